"""The first position of a new partition: its committed offset, else the reset policy.

One OffsetFetch at a time, for exactly the partitions that are INITIALIZING and that a poll() or position() needs. When
that set or the generation changes, the pending request is cancelled and another one is sent. A set that changes again
and again, for example while a listener seeks one partition after the other, causes one request per retry_backoff_ms. A
failed or slow OffsetFetch never counts as "nothing committed".
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias

from kclient.errors import KclientError, NoOffsetError
from kclient.log import get_logger
from kclient.positions.lookup_context import LookupContext
from kclient.text import format_names, format_partitions
from kclient.types import OffsetAndMetadata, TopicPartition

logger: Final = get_logger("kclient.positions")

KIND = "OffsetFetch"

Committed: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata | None]
FetchCommitted: TypeAlias = Callable[[Sequence[TopicPartition]], Awaitable[Committed]]


class CommittedLookup:
    """Sends OffsetFetch by `fetch_committed`; None for a consumer without a group, which has no committed offsets."""

    def __init__(self, context: LookupContext, fetch_committed: FetchCommitted | None) -> None:
        self._context = context
        self._fetch_committed = fetch_committed
        self._backoff = context.backoff()
        self._in_flight_versions: dict[TopicPartition, int] = {}
        self._task: asyncio.Task[None] | None = None
        self._changed_at = -math.inf
        self.retry_at: float = 0.0

    @property
    def in_flight(self) -> bool:
        """Whether an OffsetFetch is in flight."""
        return self._task is not None

    def start_due(self, now: float) -> None:
        """Send OffsetFetch for the waiting partitions, unless one for the same partitions is in flight."""
        positions = self._context.positions
        if self._task is None and (KIND in self._context.errors or now < self.retry_at):
            return
        wanted = {tp: positions.state(tp).position_version for tp in positions.partitions_needing_committed()}
        # The first change asks again at once; changes within the next backoff share one request.
        if self._task is not None and wanted != self._in_flight_versions:
            self.cancel()
            self.retry_at = self._changed_at + self._context.config.retry_backoff_ms / 1000
            self._changed_at = now
        if not wanted or self._task is not None or now < self.retry_at:
            return
        if self._fetch_committed is None:
            self._apply(wanted, dict.fromkeys(wanted))
        else:
            self._in_flight_versions = wanted
            self._task = self._context.spawn(self._send(self._fetch_committed, wanted), KIND)

    def cancel(self) -> None:
        """Cancel the request in flight."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _send(self, fetch_committed: FetchCommitted, versions: Mapping[TopicPartition, int]) -> None:
        try:
            committed = await fetch_committed(list(versions))
        except KclientError as exc:
            self._task = None
            logger.debug(
                "The committed offsets of %s are not known yet: %s", format_partitions(versions), exc
            )
            self.retry_at = self._context.runtime.now() + self._backoff.next()
            if not exc.retriable:
                self._context.errors.store(KIND, exc, versions)
            self._context.positions.changed.notify()
        else:
            self._task = None
            self._backoff.reset()
            self._apply(versions, committed)

    def _apply(self, versions: Mapping[TopicPartition, int], committed: Committed) -> None:
        """Set the position of each partition that has not changed since the request was sent."""
        positions, metadata = self._context.positions, self._context.cluster.metadata
        unset: list[TopicPartition] = []
        ignored: list[TopicPartition] = []
        resumed: list[str] = []
        for tp, offset in committed.items():
            self._context.update_last_seen_epoch(tp, None if offset is None else offset.leader_epoch)
            if tp not in versions or positions.find(tp, versions[tp]) is None:
                ignored.append(tp)
            elif offset is None:
                unset.append(tp)
            else:
                positions.seek(tp, offset, metadata.leader(tp))
                resumed.append(f"{tp} at {offset.offset}")
        if ignored:
            logger.info(
                "The commits of %s are not used: moved or revoked meanwhile", format_partitions(ignored)
            )
        if resumed:
            logger.info("Going on at committed offsets: %s", format_names(resumed))
        self._begin_without_commit(unset, versions)

    def _begin_without_commit(
        self, partitions: Sequence[TopicPartition], versions: Mapping[TopicPartition, int]
    ) -> None:
        """Apply the reset policy, or store one error for all of them."""
        strategy = self._context.policy.on_no_committed_offset
        if strategy is not None:
            for tp in partitions:
                self._context.positions.request_offset_reset(tp, strategy)
        elif partitions:
            error = NoOffsetError(
                f"No offset is committed for {format_partitions(partitions)}. on_no_committed_offset is 'error' "
                "(auto_offset_reset 'none'), so no place to begin is chosen. "
                "Seek to one, commit one, or set on_no_committed_offset to 'earliest' or 'latest'.",
                partitions=tuple(partitions),
            )
            self._context.errors.store(KIND, error, {tp: versions[tp] for tp in partitions})

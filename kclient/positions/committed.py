"""The first position of a new partition: its committed offset, else what the reset policy says.

One OffsetFetch at a time, for exactly the partitions that are INITIALIZING and that a poll() or position() needs; when
that set or the generation changes, the pending one is forgotten and another is sent. A set that changes again and
again, while a listener seeks one partition after the other say, is asked for once in retry_backoff_ms. A failed or slow
OffsetFetch never counts as "nothing committed".
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from kclient.errors import KclientError, NoOffsetError
from kclient.log import get_logger
from kclient.positions.shared import Shared
from kclient.text import format_names, format_partitions
from kclient.types import OffsetAndMetadata, TopicPartition

logger = get_logger("kclient.positions")

KIND = "OffsetFetch"

Committed: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata | None]
FetchCommitted: TypeAlias = Callable[[Sequence[TopicPartition]], Awaitable[Committed]]


class CommittedLookup:
    """`fetch_committed` asks the coordinator; None for a consumer without a group, which has nothing committed."""

    def __init__(self, shared: Shared, fetch_committed: FetchCommitted | None) -> None:
        self._shared = shared
        self._fetch_committed = fetch_committed
        self._backoff = shared.backoff()
        self._asked: dict[TopicPartition, int] = {}
        self._task: asyncio.Task[None] | None = None
        self._changed_at = -math.inf
        self.retry_at = 0.0

    @property
    def is_asking(self) -> bool:
        """Whether the answer of an OffsetFetch is awaited."""
        return self._task is not None

    def start_due(self, now: float) -> None:
        """Ask for the partitions that wait, unless they are being asked for."""
        positions = self._shared.positions
        if self._task is None and (KIND in self._shared.errors or now < self.retry_at):
            return
        wanted = {tp: positions.state(tp).era for tp in positions.needing_committed()}
        if self._task is not None and wanted != self._asked:
            self.forget()
            self.retry_at = self._changed_at + self._shared.config.retry_backoff_ms / 1000
            self._changed_at = now
        if not wanted or self._task is not None or now < self.retry_at:
            return
        if self._fetch_committed is None:
            self._apply(wanted, dict.fromkeys(wanted))
        else:
            self._asked = wanted
            self._task = self._shared.spawn(self._ask(self._fetch_committed, wanted), KIND)

    def forget(self) -> None:
        """Ignore the answer of what is in flight."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _ask(self, fetch_committed: FetchCommitted, eras: Mapping[TopicPartition, int]) -> None:
        try:
            committed = await fetch_committed(list(eras))
        except KclientError as exc:
            self._task = None
            logger.debug("The committed offsets of %s are not known yet: %s", format_partitions(eras), exc)
            self.retry_at = self._shared.runtime.now() + self._backoff.next()
            if not exc.retriable:
                self._shared.errors.store(KIND, exc, eras)
            self._shared.positions.changed.notify()
        else:
            self._task = None
            self._backoff.reset()
            self._apply(eras, committed)

    def _apply(self, eras: Mapping[TopicPartition, int], committed: Committed) -> None:
        """Give each partition that still waits its position."""
        positions, metadata = self._shared.positions, self._shared.cluster.metadata
        unset: list[TopicPartition] = []
        ignored: list[TopicPartition] = []
        resumed: list[str] = []
        for tp, offset in committed.items():
            self._shared.saw_epoch(tp, None if offset is None else offset.leader_epoch)
            if tp not in eras or positions.find(tp, eras[tp]) is None:
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
        self._begin_without_commit(unset, eras)

    def _begin_without_commit(
        self, partitions: Sequence[TopicPartition], eras: Mapping[TopicPartition, int]
    ) -> None:
        """The reset policy, or one error for all of them."""
        strategy = self._shared.policy.on_no_offset
        if strategy is not None:
            for tp in partitions:
                self._shared.positions.request_reset(tp, strategy)
        elif partitions:
            error = NoOffsetError(
                f"No offset is committed for {format_partitions(partitions)}. on_no_offset is 'error' "
                "(auto_offset_reset 'none'), so no place to begin is chosen. "
                "Seek to one, commit one, or set on_no_offset to 'earliest' or 'latest'.",
                partitions=tuple(partitions),
            )
            self._shared.errors.store(KIND, error, {tp: eras[tp] for tp in partitions})

"""What the lookups of positions share: collaborators, retry rules, stored errors, and reports.

Error codes get one log line per code. Positions that the log lost get one WARNING for each response, whose record
carries the events as `offset_resets`; `PositionUpdater` passes each event to a callback too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from kclient.config import Config
from kclient.errors import KclientError
from kclient.log import ThrottledLogger, get_logger
from kclient.network.backoff import Backoff
from kclient.positions.state import ResetPolicy
from kclient.positions.table import Positions
from kclient.protocol import errors as codes
from kclient.runtime import Runtime
from kclient.text import format_partitions
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.network.cluster import Cluster

logger: Final = get_logger("kclient.positions")

TRUNCATED: Final = "truncated"
TRANSIENT: Final = frozenset(
    {
        codes.LEADER_NOT_AVAILABLE,
        codes.NOT_LEADER_OR_FOLLOWER,
        codes.REPLICA_NOT_AVAILABLE,
        codes.KAFKA_STORAGE_ERROR,
        codes.FENCED_LEADER_EPOCH,
        codes.UNKNOWN_LEADER_EPOCH,
        codes.OFFSET_NOT_AVAILABLE,
    }
)
"""Codes that usually end with the next metadata update."""


@attrs.frozen
class _Stored:
    error: KclientError
    versions: Mapping[TopicPartition, int]


class StoredErrors:
    """Errors of background work, kept for the next poll: one of each kind, raised once, dropped when outdated.

    While an error is stored, its kind of lookup sends no requests. Taking the error starts the lookup again; a first
    position is then looked up with the next poll. An application that goes on polling sees a lasting error with every
    poll, but not after the commit that the error advises. An application that does not poll causes no requests.
    """

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self._stored: dict[str, _Stored] = {}

    def __contains__(self, kind: object) -> bool:
        return kind in self._stored

    def store(self, kind: str, error: KclientError, versions: Mapping[TopicPartition, int]) -> None:
        """Keep the error for the next poll. `versions` are the partitions that it concerns, perhaps none.

        Replaces an outdated error of this kind, which would never be raised. Drops this one where another one waits.
        """
        waiting = self._stored.get(kind)
        if waiting is not None and (self._current(waiting) or not waiting.versions):
            logger.error("An error waits for the next poll already, so this one is dropped: %s", error)
            return
        self._stored[kind] = _Stored(error, dict(versions))
        self._positions.changed.notify()

    def about(self, tp: TopicPartition) -> KclientError | None:
        """Return the stored error that concerns this partition at its present position."""
        for stored in self._stored.values():
            if tp in stored.versions and self._positions.find(tp, stored.versions[tp]) is not None:
                return stored.error
        return None

    def take(self) -> KclientError | None:
        """Remove and return the oldest error that is not outdated. Its kind of lookup may start again."""
        while self._stored:
            kind = next(iter(self._stored))
            stored = self._stored.pop(kind)
            self._positions.changed.notify()
            current = self._current(stored)
            for tp in current:
                self._positions.resume_after_error(tp)
            if current or not stored.versions:
                return stored.error
        return None

    def _current(self, stored: _Stored) -> list[TopicPartition]:
        """Return the partitions of an error whose position has not changed since."""
        return [
            tp for tp, version in stored.versions.items() if self._positions.find(tp, version) is not None
        ]


@attrs.frozen
class OffsetReset:
    """The log did not hold offset `lost` of the partition any more, and reading goes on at `position`.

    `strategy` is the policy that chose the position: earliest, latest, by_duration; or `truncated` where the new
    leader returned the offset at which its log diverges.
    """

    partition: TopicPartition
    lost: int
    position: int
    strategy: str

    @property
    def skipped(self) -> int:
        """How many offsets are skipped; 0 where reading goes back."""
        return max(0, self.position - self.lost)

    def __str__(self) -> str:
        distance = f"{self.skipped} records skipped" if self.skipped else f"{self.lost - self.position} back"
        return f"{self.partition} from {self.lost} to {self.position} ({self.strategy}), {distance}"


OnOffsetReset: TypeAlias = Callable[[OffsetReset], None]


@attrs.frozen(eq=False)
class LookupContext:
    """The collaborators of all lookups of one consumer.

    `spawn` starts a task that ends with the position updater. `on_offset_reset` is called for each lost position.
    """

    cluster: Cluster
    positions: Positions
    config: Config
    runtime: Runtime
    policy: ResetPolicy
    errors: StoredErrors
    spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
    on_offset_reset: OnOffsetReset
    throttled: ThrottledLogger = attrs.field(factory=lambda: ThrottledLogger(logger))

    @property
    def request_timeout(self) -> float:
        """How long a lookup request may be in flight, in seconds."""
        return self.config.request_timeout_ms / 1000

    def backoff(self) -> Backoff:
        """Return a new backoff for the retries of one kind of lookup."""
        return Backoff.for_retries(self.config, self.runtime)

    def update_last_seen_epoch(self, tp: TopicPartition, epoch: int | None) -> None:
        """Reject metadata older than this leader epoch from now on (KIP-320)."""
        self.cluster.update_last_seen_epoch(tp, epoch)

    def sent(self, versions: Mapping[TopicPartition, int]) -> None:
        """Mark the lookup of these as in flight, for request_timeout_ms at most."""
        self.positions.mark_in_flight(versions, self.runtime.now() + self.request_timeout)

    def failed(
        self, kind: str, versions: Mapping[TopicPartition, int], error: KclientError, delay: float
    ) -> None:
        """Retry after `delay` seconds with fresh metadata; store an error that is not retriable for the next poll."""
        self.positions.set_next_allowed_retry(versions, self.runtime.now() + delay)
        self.cluster.request_update(f"{kind} failed")
        if not error.retriable:
            self.errors.store(kind, error, versions)

    def log_refused(self, api: str, refused: Mapping[TopicPartition, int]) -> None:
        """Log the error codes of a response of `api`: one line per code, also for thousands of partitions.

        Transient codes are logged at DEBUG. Any other code may last: a WARNING, at most once in ten seconds.
        """
        by_code: dict[int, list[TopicPartition]] = {}
        for tp, code in refused.items():
            by_code.setdefault(code, []).append(tp)
        for code, partitions in by_code.items():
            line = "%s: %s (%d) for %s; asking again"
            arguments = (api, codes.error(code).name, code, format_partitions(partitions))
            if code in TRANSIENT:
                logger.debug(line, *arguments)
            else:
                self.throttled.warning((api, code), self.runtime.now(), line, *arguments)


def report_resets(resets: Sequence[OffsetReset], on_offset_reset: OnOffsetReset) -> None:
    """Log the lost positions of one response, and call `on_offset_reset` for each."""
    if not resets:
        return
    logger.warning(
        "Positions were not in the log any more and jumped: %s%s. %d records skipped in all",
        "; ".join(map(str, resets[:5])),
        f"; and {len(resets) - 5} more" if len(resets) > 5 else "",
        sum(reset.skipped for reset in resets),
        extra={"offset_resets": tuple(resets)},
    )
    for reset in resets:
        on_offset_reset(reset)

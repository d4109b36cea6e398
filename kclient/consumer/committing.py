"""Commits in their order: what the user asked for, what is committed by itself, and what is committed at the end.

Asynchronous and automatic commits are never retried, and none is sent before those that were asked for earlier: while
the coordinator is out of reach they wait together, and then go out in their order. A synchronous commit, and the last
automatic one, wait for the answers to those before. Callbacks run in the order of their commits, inside the user's next
poll, commit, unsubscribe or close.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import attrs

from kclient.config import Config
from kclient.consumer.counters import Counters
from kclient.consumer.flows import Flows
from kclient.consumer.listener import CallUser
from kclient.consumer.work import UserWork
from kclient.errors import ArgumentError, BrokerError, CommitFailedError, KclientError
from kclient.group.commits import Commits, Turn
from kclient.protocol.errors import FENCED_INSTANCE_ID
from kclient.runtime import Runtime
from kclient.types import OffsetAndMetadata, TopicPartition

log = logging.getLogger("kclient.commit")

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
Ready = Callable[[], Awaitable[None]]
CommitCallback = Callable[[Offsets, KclientError | None], Awaitable[None] | None]

MAX_PENDING: Final = 10_000


@attrs.define(eq=False)
class Pending:
    """A commit that nobody waits for: `sent` once it is on the connection, which keeps the order, or never will be."""

    sent: asyncio.Future[None]
    answered: asyncio.Future[None]

    @classmethod
    def new(cls) -> Pending:
        """One that has just been asked for."""
        loop = asyncio.get_running_loop()
        return cls(loop.create_future(), loop.create_future())

    def goes_out(self) -> None:
        """The next one may follow."""
        if not self.sent.done():
            self.sent.set_result(None)


class Committing:
    """The commits of one consumer with a group. Spec: S3-18…S3-22, S4-43…S4-46, S4-58, B.14.1, B.14.2, B.14.5."""

    def __init__(
        self,
        commits: Commits,
        config: Config,
        runtime: Runtime,
        flows: Flows,
        callbacks: UserWork,
        call_user: CallUser,
        counters: Counters,
    ) -> None:
        self._commits = commits
        self._config = config
        self._runtime = runtime
        self._flows = flows
        self._callbacks = callbacks
        self._call_user = call_user
        self._counters = counters
        self._last: Pending | None = None
        self._pending = 0
        self._auto_in_flight = False
        self._next_auto_commit: float | None = None
        self._fenced: BrokerError | None = None

    def raise_if_fenced(self) -> None:
        """Another consumer took over our group instance id: nothing can be committed or joined any more."""
        if self._fenced is not None:
            raise self._fenced.with_traceback(None)

    # --- asked for by the user

    async def commit(self, offsets: Offsets) -> None:
        """Store offsets, after the asynchronous commits before. The caller bounds it.

        Raises what `Commits.commit` raises.
        """
        self.raise_if_fenced()
        await self.settle()
        await self._store(offsets)

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None, ready: Ready) -> None:
        """Store offsets when `ready`, and hand the outcome to the callback. Raises CommitFailedError on a backlog."""
        self.raise_if_fenced()
        if self._pending >= MAX_PENDING:
            raise CommitFailedError(
                f"{MAX_PENDING} asynchronous commits wait for their answers already. The coordinator is out of reach, "
                "or commits come faster than it answers. Use commit(), or commit less often.",
                reason="backlog",
                uncommitted=dict(offsets),
            )
        self._pending += 1
        before, mine = self._line_up()
        self._flows.errand("commit", self._commit_beside(dict(offsets), callback, ready, before, mine))

    async def settle(self) -> None:
        """Wait until every asynchronous and automatic commit has its answer."""
        if self._last is not None:
            await asyncio.wait([self._last.answered])

    def _line_up(self) -> tuple[Pending | None, Pending]:
        """The commit that was asked for last, and the next."""
        before, self._last = self._last, Pending.new()
        return before, self._last

    async def _commit_beside(
        self,
        offsets: Offsets,
        callback: CommitCallback | None,
        ready: Ready,
        before: Pending | None,
        mine: Pending,
    ) -> None:
        error: KclientError | None = None
        try:
            await ready()
            await self._store_in_turn(offsets, before, mine)
        except KclientError as failure:
            error = failure
            log.warning("an asynchronous commit failed: %s", failure, extra={"error": failure.kc_code})
        finally:
            self._pending -= 1
            await self._is_answered(before, mine)
        if callback is not None:
            self._callbacks.leave(lambda: self._call_user(callback, offsets, error))

    async def _store_in_turn(self, offsets: Offsets, before: Pending | None, mine: Pending) -> None:
        """One try, sent when the commit before is. Spec: I-08, M-05."""

        async def turn() -> None:
            if before is not None and not before.sent.done():
                await asyncio.wait([before.sent])
            mine.goes_out()

        await self._store(offsets, turn=turn)

    async def _is_answered(self, before: Pending | None, mine: Pending) -> None:
        """It is over, when those before it are."""
        mine.goes_out()
        try:
            if before is not None and not before.answered.done():
                await asyncio.wait([before.answered])
        finally:
            mine.answered.set_result(None)

    async def _store(self, offsets: Offsets, *, turn: Turn | None = None) -> None:
        """With `turn` it is tried once, after that; else until it is done."""
        if not offsets:
            return
        try:
            if turn is None:
                await self._commits.commit(offsets, retry=True)
            else:
                await self._commits.commit(offsets, retry=False, turn=turn)
        except KclientError as error:
            self._counters.commit_failed_total += 1
            if isinstance(error, BrokerError) and error.code == FENCED_INSTANCE_ID:
                self._fenced = error
            raise
        self._counters.commit_total += 1

    # --- by itself

    def restart_timer(self) -> None:
        """The next automatic commit is a whole interval away. Spec: S3-47."""
        self._next_auto_commit = self._runtime.now() + self._config.auto_commit_interval_ms / 1000

    def auto_commit_due(self) -> bool:
        """Whether the interval has passed and no automatic commit is under way."""
        if not self._config.enable_auto_commit or self._auto_in_flight:
            return False
        if self._next_auto_commit is None:
            self.restart_timer()
        return self._next_auto_commit is not None and self._runtime.now() >= self._next_auto_commit

    def auto_commit_at(self) -> float | None:
        """When a waiting poll must look again, None if it need not."""
        return None if self._auto_in_flight or not self._config.enable_auto_commit else self._next_auto_commit

    def auto_commit(self, offsets: Offsets) -> None:
        """Store released offsets beside the poll; failures are logged and tried again later."""
        if not offsets:
            self.put_off()
            return
        self.restart_timer()
        self._auto_in_flight = True
        self._flows.errand("automatic commit", self._auto_commit(offsets, *self._line_up()))

    def put_off(self) -> None:
        """Nothing can be committed at this moment: look again soon, but not at once. Spec: S4-43."""
        pause_ms = max(self._config.auto_commit_interval_ms, self._config.retry_backoff_ms)
        self._next_auto_commit = self._runtime.now() + pause_ms / 1000

    async def _auto_commit(self, offsets: Offsets, before: Pending | None, mine: Pending) -> None:
        try:
            await self._store_in_turn(offsets, before, mine)
        except KclientError as error:
            log.warning("an automatic commit failed: %s", error, extra={"error": error.kc_code})
            if error.retriable and self._next_auto_commit is not None:
                soon = self._runtime.now() + self._config.retry_backoff_ms / 1000
                self._next_auto_commit = min(soon, self._next_auto_commit)
        else:
            self._counters.auto_commit_total += 1
            log.debug("committed by itself: %d partitions", len(offsets))
        finally:
            self._auto_in_flight = False
            await self._is_answered(before, mine)

    async def commit_for_good(self, offsets: Offsets, why: str, timeout: float) -> None:
        """The last automatic commit before partitions go: with retries, bounded; a failure is only logged.

        Spec: S3-30, B.13.6, B.18.
        """
        if not self._config.enable_auto_commit or not offsets:
            return
        try:
            async with asyncio.timeout(timeout):
                await self.settle()
                await self._store(offsets)
        except (KclientError, TimeoutError) as error:
            log.warning("the automatic commit %s failed: %s", why, error or "no answer in time")
        else:
            self._counters.auto_commit_total += 1


def checked_offsets(offsets: Any) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets to commit as given. Raises ArgumentError for what is none."""
    checked: dict[TopicPartition, OffsetAndMetadata] = {}
    if not isinstance(offsets, Mapping):
        raise ArgumentError(f"Offsets are a mapping of TopicPartition to OffsetAndMetadata, not {offsets!r}.")
    for partition, offset in offsets.items():
        if not isinstance(offset, OffsetAndMetadata):
            raise ArgumentError(
                f"The offset to commit for {partition} is {offset!r}. Give OffsetAndMetadata(offset), where offset is "
                "that of the next record to consume."
            )
        if offset.offset < 0:
            raise ArgumentError(
                f"The offset to commit for {partition} is {offset.offset}. Offsets count from 0. "
                "Give that of the next record to consume."
            )
        checked[TopicPartition(*partition)] = offset
    return checked

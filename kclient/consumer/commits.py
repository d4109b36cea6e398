"""Commits in order: the user's, automatic ones, and the final one before partitions are revoked.

    commit               retried    is sent when
    commit()             yes        all earlier commits are answered; later ones wait for its response
    commit_async()       no         the previous commit was sent, since one connection keeps the order
    automatic            no         the previous commit was sent
    final automatic      yes        all earlier commits are answered; before a revocation and at close()

While the coordinator is unknown, commits wait and are then sent in order. A commit that is given up does not change the
order of the others. Callbacks run in the order of their commits, inside the user's next poll, commit, unsubscribe or
close. close() gives every asynchronous commit an outcome: `end` waits for the responses, also if the consumer was not
connected yet, and commits without a response then fail with CommitFailedError (closed).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import attrs

from kclient.config import Config
from kclient.consumer.callbacks import CallbackQueue, CallUser
from kclient.consumer.interceptors import Interceptors
from kclient.consumer.tasks import BackgroundTasks, closed_error
from kclient.errors import BrokerError, CommitFailedError, InternalError, KclientError
from kclient.group.commit_errors import commit_failed
from kclient.group.offset_commit import GiveUp, OffsetCommitter, OnRetry, ignore_retry, never_give_up
from kclient.log import ThrottledLogger, get_logger
from kclient.metrics.calls import KclientMetrics
from kclient.protocol.errors import FENCED_INSTANCE_ID
from kclient.runtime import Runtime
from kclient.types import OffsetAndMetadata, TopicPartition

log: Final = get_logger("kclient.commit")

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
Ready = Callable[[], Awaitable[None]]
CommitCallback = Callable[[Offsets, KclientError | None], Awaitable[None] | None]

MAX_PENDING: Final = 10_000
GIVE_UP_CHECK_SECONDS: Final = 0.1  # between two checks whether waiting for responses can still succeed
UNWIND_SECONDS: Final = (
    1.0  # for given-up commits that wait for one which another task cannot give up at once
)


class CommitManager:
    """The commits of one consumer with a group."""

    def __init__(
        self,
        committer: OffsetCommitter,
        config: Config,
        runtime: Runtime,
        tasks: BackgroundTasks,
        callbacks: CallbackQueue,
        call_user: CallUser,
        interceptors: Interceptors,
        counters: KclientMetrics,
    ) -> None:
        self._committer = committer
        self._config = config
        self._runtime = runtime
        self._tasks = tasks
        self._callbacks = callbacks
        self._call_user = call_user
        self._interceptors = interceptors
        self._counters = counters
        self._queue = CommitQueue()
        self._throttled = ThrottledLogger(log)
        self._pending: dict[asyncio.Task[None], asyncio.Timeout | None] = {}  # asynchronous; None: not begun
        self._give_up: GiveUp = never_give_up  # whether to stop retrying a commit; set when close() begins
        self._given_up = ""  # why asynchronous commits fail at once
        self._ended = False
        self._auto_in_flight = False
        self._next_auto_commit: float | None = None
        self._fenced: BrokerError | None = None

    def raise_if_fenced(self) -> None:
        """Raise FENCED_INSTANCE_ID if another consumer has taken over the group instance id."""
        if self._fenced is not None:
            raise self._fenced.with_traceback(None)

    # --- commits of the user

    async def commit(self, offsets: Offsets, on_retry: OnRetry = ignore_retry) -> None:
        """Commit offsets after the earlier commits, as the current member. The caller limits the time.

        `on_retry` is called with the reason of each failed try. A commit of a listener
        that close() runs is given up when the cluster is gone.

        Raises what `OffsetCommitter.commit` raises.
        """
        self.raise_if_fenced()
        # Before the wait: the partitions may be revoked while earlier commits are answered.
        origin = self._committer.origin(offsets) if offsets else None
        ticket = self._queue.enqueue()
        try:
            await ticket.wait_for_earlier()
            give_up = self._give_up
            await self._store(
                self._committer.commit(offsets, retry=True, origin=origin, give_up=give_up, on_retry=on_retry)
            )
        finally:
            ticket.finish()

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None, ready: Ready) -> None:
        """Commit offsets when `ready` returns, then call the callback. Raise CommitFailedError on a backlog."""
        self.raise_if_fenced()
        if self._ended:
            raise closed_error()
        if len(self._pending) >= MAX_PENDING:
            raise CommitFailedError(
                f"{MAX_PENDING} asynchronous commits wait for their responses already. The coordinator is out of "
                "reach, or commits come faster than it answers. Use commit(), or commit less often.",
                reason="backlog",
                uncommitted=dict(offsets),
            )
        # Here and not in the task: the order is that of the calls.
        ticket = self._queue.enqueue()
        commit = self._commit_in_background(dict(offsets), callback, ready, ticket)
        task = self._tasks.spawn("commit", commit)
        self._pending[task] = None
        task.add_done_callback(self._pending.pop)

    async def wait_for_responses(self) -> None:
        """Wait until every commit has its response, and its callback is in the queue."""
        if self._pending:
            await asyncio.wait(set(self._pending))
        await self._queue.wait_for_responses()

    async def end(self, deadline: float, give_up: GiveUp = never_give_up) -> None:
        """Wait for the responses until `deadline` or `give_up()`. Asynchronous commits without a response fail then."""
        self._give_up = give_up
        settled = asyncio.create_task(self.wait_for_responses())
        why = ""
        try:
            while not (settled.done() or why):
                left = deadline - self._runtime.now()
                await asyncio.wait({settled}, timeout=max(0.0, min(GIVE_UP_CHECK_SECONDS, left)))
                if left <= 0:
                    why = "close() had no time left to wait for the coordinator's response"
                elif give_up():
                    why = "no broker can be reached"
        finally:
            settled.cancel()
        if self._pending and not settled.done():
            self._fail_pending(why)
            await asyncio.wait(set(self._pending), timeout=UNWIND_SECONDS)

    def refuse_more(self) -> None:
        """Let `commit_async` raise ClosedError from now on: no task would be left to send it."""
        self._ended = True

    def _fail_pending(self, why: str) -> None:
        self._given_up = why
        for scope in self._pending.values():
            if scope is not None and not scope.expired():
                scope.reschedule(asyncio.get_running_loop().time())

    async def _commit_in_background(
        self, offsets: Offsets, callback: CommitCallback | None, ready: Ready, ticket: CommitTicket
    ) -> None:
        error: KclientError | None = None
        try:
            await self._commit_when_ready(offsets, ready, ticket)
        except KclientError as exc:
            error = exc
        except Exception as exc:  # noqa: BLE001 – the callback gets it
            error = InternalError.of("An asynchronous commit", exc)
        finally:
            ticket.finish()
        if error is not None:
            self._warn("an asynchronous commit", error)
        await ticket.wait_finished()
        if callback is not None:
            self._callbacks.enqueue(lambda: self._call_user(callback, offsets, error))

    async def _commit_when_ready(self, offsets: Offsets, ready: Ready, ticket: CommitTicket) -> None:
        """Commit offsets when `ready` returns. Raise CommitFailedError (closed) if `end` gives up first."""
        # `end` may have given up before this task runs; later it reschedules the scope.
        scope = asyncio.timeout(0 if self._given_up else None)
        try:
            async with scope:
                if (task := asyncio.current_task()) in self._pending:
                    self._pending[task] = scope
                await ready()
                await self._store(
                    self._committer.commit(offsets, retry=False, before_send=ticket.wait_to_send)
                )
        except TimeoutError as exc:
            if not scope.expired():
                raise
            raise commit_failed("closed", self._config.group_id or "", self._given_up, offsets) from exc

    async def _store(self, commit: Awaitable[Offsets]) -> None:
        """Await a commit: count a failure, remember FENCED_INSTANCE_ID, call the interceptors after success."""
        try:
            offsets = await commit
        except KclientError as exc:
            self._counters.count("commit-failed-total")
            if isinstance(exc, BrokerError) and exc.code == FENCED_INSTANCE_ID:
                self._fenced = exc
            raise
        if offsets and self._interceptors:
            self._callbacks.enqueue(lambda: self._interceptors.on_commit(offsets))

    # --- automatic commits

    def restart_timer(self) -> None:
        """Schedule the next automatic commit one interval from now, and never at once."""
        pause_ms = max(self._config.auto_commit_interval_ms, self._config.retry_backoff_ms)
        self._next_auto_commit = self._runtime.now() + pause_ms / 1000

    def auto_commit_due(self) -> bool:
        """Return whether the interval has passed and no automatic commit is in flight."""
        if not self._config.enable_auto_commit or self._auto_in_flight:
            return False
        if self._next_auto_commit is None:
            self.restart_timer()
        return self._next_auto_commit is not None and self._runtime.now() >= self._next_auto_commit

    def auto_commit_at(self) -> float | None:
        """Return when a waiting poll must commit automatically, None if it need not."""
        return None if self._auto_in_flight or not self._config.enable_auto_commit else self._next_auto_commit

    def auto_commit(self, offsets: Offsets) -> None:
        """Commit committable offsets in the background; log a failure and try again later."""
        self.restart_timer()
        if offsets:
            self._auto_in_flight = True
            self._tasks.spawn("automatic commit", self._auto_commit(offsets, self._queue.enqueue()))

    async def _auto_commit(self, offsets: Offsets, ticket: CommitTicket) -> None:
        try:
            await self._store(self._committer.commit(offsets, retry=False, before_send=ticket.wait_to_send))
        except KclientError as exc:
            self._warn("an automatic commit", exc)
            if exc.retriable and self._next_auto_commit is not None:
                soon = self._runtime.now() + self._config.retry_backoff_ms / 1000
                self._next_auto_commit = min(soon, self._next_auto_commit)
        else:
            self._counters.count("auto-commit-total")
            log.debug("auto-committed %d partitions", len(offsets))
        finally:
            self._auto_in_flight = False
            self._callbacks.notify()
            ticket.finish()

    def _warn(self, what: str, error: KclientError) -> None:
        """Log a failure of a background commit. The log is throttled for failures that repeat."""
        fault = (what, error.kc_code, getattr(error, "reason", None) or getattr(error, "code", None))
        now, extra = self._runtime.now(), {"error": error.kc_code}
        self._throttled.warning(fault, now, f"{what} failed: %s", error, extra=extra)

    async def final_auto_commit(
        self, newest: Callable[[], Offsets], why: str, timeout: float, give_up: GiveUp = never_give_up
    ) -> None:
        """Commit automatically before partitions are revoked: retry until `timeout`, and only log a failure.

        `newest` returns the offsets to store, and is called again after STALE_MEMBER_EPOCH. Retries end early when
        `give_up` returns True.
        """
        if not self._config.enable_auto_commit or not newest():
            return
        ticket = self._queue.enqueue()
        refusals = ["no response in time"]
        try:
            async with asyncio.timeout(timeout):
                await ticket.wait_for_earlier()
                await self._store(self._committer.commit_newest(newest, give_up, refusals.append))
        except (KclientError, TimeoutError) as exc:
            log.warning("the automatic commit %s failed: %s", why, str(exc) or refusals[-1])
        else:
            self._counters.count("auto-commit-total")
        finally:
            ticket.finish()

    def omit_auto_commit(self, why: str) -> None:
        """Log that close() does not commit automatically. `why` follows "this consumer", as in "is in a rebalance"."""
        if self._config.enable_auto_commit:
            log.warning(
                "no automatic commit on close: this consumer %s. The records since the last commit are returned again "
                "to the next owner of their partitions",
                why,
            )


@attrs.define(eq=False)
class CommitTicket:
    """The place of one commit: `sent` when it was sent or given up, `answered` when it was answered or given up."""

    sent: asyncio.Future[None]
    answered: asyncio.Future[None]
    before: CommitTicket | None

    async def wait_to_send(self) -> None:
        """Wait until the previous commit was sent. The next commit may follow then."""
        if self.before is not None:
            await _done(self.before.sent)
        _follow(None, self.sent)

    async def wait_for_earlier(self) -> None:
        """Wait until all earlier commits are answered. No later one is sent before `finish`."""
        if self.before is not None:
            await _done(self.before.answered)

    def finish(self) -> None:
        """Note that the commit is answered or given up. Later ones still wait for earlier ones."""
        before, self.before = self.before, None
        _follow(None if before is None else before.sent, self.sent)
        _follow(None if before is None else before.answered, self.answered)

    async def wait_finished(self) -> None:
        """Wait until this commit and all earlier ones are finished."""
        await _done(self.answered)


class CommitQueue:
    """Keeps the commits of one consumer in order, whichever task makes them."""

    def __init__(self) -> None:
        self._last: CommitTicket | None = None

    def enqueue(self) -> CommitTicket:
        """Return a ticket at the end of the queue. The commit must call `finish` on it, also when it fails."""
        loop = asyncio.get_running_loop()
        self._last = CommitTicket(loop.create_future(), loop.create_future(), self._last)
        return self._last

    async def wait_for_responses(self) -> None:
        """Wait until all commits that are in the queue now are finished."""
        if self._last is not None:
            await self._last.wait_finished()


async def _done(future: asyncio.Future[None]) -> None:
    """Wait for a future without cancelling it."""
    if not future.done():
        await asyncio.wait([future])


def _follow(first: asyncio.Future[None] | None, second: asyncio.Future[None]) -> None:
    """Complete the second future when the first is done, or at once without a first."""
    if first is not None and not first.done():
        first.add_done_callback(lambda _: _follow(None, second))
    elif not second.done():
        second.set_result(None)

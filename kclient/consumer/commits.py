"""Commits in order: those that the user asked for, automatic ones, and the final one before partitions go.

Asynchronous and automatic commits are never retried: while the coordinator is out of reach they wait together, and
then go out in their order. A synchronous commit, and the last automatic one, wait for the answers to those before, and
are retried. Callbacks run in the order of their commits, inside the user's next poll, commit,
unsubscribe or close. A close gives every asynchronous commit its outcome: `end` waits for the answers, also where the
consumer was not connected yet, and what has none by then fails with CommitFailedError (closed).

CommitQueue keeps the commits of one consumer in order: none overtakes an earlier one, whichever task asked for it.

A commit that is tried once goes out as soon as the one before has gone out, for a connection keeps the order. One that
is retried goes out when all before it have their answers, and blocks all later ones until it is over. A commit that is
given up does not change the order: later ones still wait for earlier ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import attrs

from kclient.config import Config
from kclient.consumer.callbacks import CallbackQueue
from kclient.consumer.interceptors import Interceptors
from kclient.consumer.listener import CallUser
from kclient.consumer.tasks import BackgroundTasks, closed_error
from kclient.errors import BrokerError, CommitFailedError, InternalError, KclientError
from kclient.group.commit_errors import commit_failed
from kclient.group.offset_commit import GiveUp, OffsetCommitter, OnRetry, ignore_retry, never_give_up
from kclient.log import ThrottledLogger, get_logger
from kclient.metrics.calls import KclientMetrics
from kclient.protocol.errors import FENCED_INSTANCE_ID
from kclient.runtime import Runtime
from kclient.types import OffsetAndMetadata, TopicPartition

log = get_logger("kclient.commit")

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
Ready = Callable[[], Awaitable[None]]
CommitCallback = Callable[[Offsets, KclientError | None], Awaitable[None] | None]

MAX_PENDING: Final = 10_000
LOOK_SECONDS: Final = 0.1  # between two checks whether waiting for answers can still succeed
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
        """Another consumer took over our group instance id: nothing can be committed or joined any more."""
        if self._fenced is not None:
            raise self._fenced.with_traceback(None)

    # --- asked for by the user

    async def commit(self, offsets: Offsets, on_retry: OnRetry = ignore_retry) -> None:
        """Store offsets, after the commits before and as the member that we are now. The caller bounds it.

        `on_retry` is called with the reason of each failed try. A listener that close() runs does not
        wait for a cluster that has gone.

        Raises what `OffsetCommitter.commit` raises.
        """
        self.raise_if_fenced()
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
        """Store offsets when `ready`, and hand the outcome to the callback. Raises CommitFailedError on a backlog."""
        self.raise_if_fenced()
        if self._ended:
            raise closed_error()
        if len(self._pending) >= MAX_PENDING:
            raise CommitFailedError(
                f"{MAX_PENDING} asynchronous commits wait for their answers already. The coordinator is out of reach, "
                "or commits come faster than it answers. Use commit(), or commit less often.",
                reason="backlog",
                uncommitted=dict(offsets),
            )
        ticket = self._queue.enqueue()
        commit = self._commit_beside(dict(offsets), callback, ready, ticket)
        task = self._tasks.spawn("commit", commit)
        self._pending[task] = None
        task.add_done_callback(self._pending.pop)

    async def wait_for_answers(self) -> None:
        """Wait until every commit that was asked for has its answer, and its callback stands in the queue."""
        if self._pending:
            await asyncio.wait(set(self._pending))
        await self._queue.wait_for_answers()

    async def end(self, until: float, give_up: GiveUp = never_give_up) -> None:
        """Wait for the answers until `until` or `give_up()`. Asynchronous commits without an answer fail then."""
        self._give_up = give_up
        settled = asyncio.create_task(self.wait_for_answers())
        why = ""
        try:
            while not (settled.done() or why):
                left = until - self._runtime.now()
                await asyncio.wait({settled}, timeout=max(0.0, min(LOOK_SECONDS, left)))
                if left <= 0:
                    why = "close() had no time left to wait for the coordinator's answer"
                elif give_up():
                    why = "no broker can be reached"
        finally:
            settled.cancel()
        if self._pending and not settled.done():
            self._fail_pending(why)
            await asyncio.wait(set(self._pending), timeout=UNWIND_SECONDS)

    def refuse_more(self) -> None:
        """From now on `commit_async` raises ClosedError: nothing would be left to send it and to call back."""
        self._ended = True

    def _fail_pending(self, why: str) -> None:
        self._given_up = why
        for scope in self._pending.values():
            if scope is not None and not scope.expired():
                scope.reschedule(asyncio.get_running_loop().time())

    async def _commit_beside(
        self, offsets: Offsets, callback: CommitCallback | None, ready: Ready, ticket: CommitTicket
    ) -> None:
        error: KclientError | None = None
        try:
            await self._unless_given_up(offsets, ready, ticket)
        except KclientError as exc:
            error = exc
        except Exception as exc:  # noqa: BLE001 – the callback must hear of it
            error = InternalError.of("An asynchronous commit", exc)
        finally:
            ticket.finish()
        if error is not None:
            self._warn("an asynchronous commit", error)
        await ticket.wait_finished()
        if callback is not None:
            self._callbacks.enqueue(lambda: self._call_user(callback, offsets, error))

    async def _unless_given_up(self, offsets: Offsets, ready: Ready, ticket: CommitTicket) -> None:
        """Store offsets when `ready`. Raises CommitFailedError (closed) when `end` waits no longer."""
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
        """What every commit has in common: failures are counted, a fencing lasts, interceptors hear what was stored."""
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
        """The next automatic commit is a whole interval away, and never follows at once."""
        pause_ms = max(self._config.auto_commit_interval_ms, self._config.retry_backoff_ms)
        self._next_auto_commit = self._runtime.now() + pause_ms / 1000

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
        """Log a failure of a background commit, throttled: one that repeats must not fill the log."""
        fault = (what, error.kc_code, getattr(error, "reason", None) or getattr(error, "code", None))
        now, extra = self._runtime.now(), {"error": error.kc_code}
        self._throttled.warning(fault, now, f"{what} failed: %s", error, extra=extra)

    async def final_auto_commit(
        self, newest: Callable[[], Offsets], why: str, timeout: float, give_up: GiveUp = never_give_up
    ) -> None:
        """The last automatic commit before partitions go: with retries, bounded; a failure is only logged.

        `newest` gives what to store, and gives it again where the member epoch was stale. Retries end early when they
        `give_up` says so.
        """
        if not self._config.enable_auto_commit or not newest():
            return
        ticket = self._queue.enqueue()
        refusals = ["no answer in time"]
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


@attrs.define(eq=False)
class CommitTicket:
    """One commit's place: `sent` once it is on the connection, or never will be; `answered` once that is known."""

    sent: asyncio.Future[None]
    answered: asyncio.Future[None]
    before: CommitTicket | None

    async def wait_to_send(self) -> None:
        """Return when the one before has gone out; the next may follow then."""
        if self.before is not None:
            await _done(self.before.sent)
        _follow(None, self.sent)

    async def wait_for_earlier(self) -> None:
        """Return when all earlier commits are answered; no later one is sent until `finish` is called."""
        if self.before is not None:
            await _done(self.before.answered)

    def finish(self) -> None:
        """It is answered, or was given up."""
        before, self.before = self.before, None
        _follow(None if before is None else before.sent, self.sent)
        _follow(None if before is None else before.answered, self.answered)

    async def wait_finished(self) -> None:
        """Return when this commit and all earlier ones are over."""
        await _done(self.answered)


class CommitQueue:
    """See the module."""

    def __init__(self) -> None:
        self._last: CommitTicket | None = None

    def enqueue(self) -> CommitTicket:
        """Return a ticket at the end of the queue. The commit must call `finish` on it, also when it fails."""
        loop = asyncio.get_running_loop()
        self._last = CommitTicket(loop.create_future(), loop.create_future(), self._last)
        return self._last

    async def wait_for_answers(self) -> None:
        """Wait until all commits that are in the queue now are over."""
        if self._last is not None:
            await self._last.wait_finished()


async def _done(future: asyncio.Future[None]) -> None:
    """Wait for a future without cancelling it."""
    if not future.done():
        await asyncio.wait([future])


def _follow(first: asyncio.Future[None] | None, second: asyncio.Future[None]) -> None:
    """The second is done when the first is."""
    if first is not None and not first.done():
        first.add_done_callback(lambda _: _follow(None, second))
    elif not second.done():
        second.set_result(None)

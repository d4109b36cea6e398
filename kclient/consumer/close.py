"""close() and unsubscribe(): what happens in which order, and why.

    close                                                                 why then

    1   other calls that wait raise ClosedError; wakeups end              no two tasks run the user's code; a wakeup
                                                                          would cut the commits below short
    2   commits under way get their answers, connected yet or not;        the next commit must not overtake them
        fetch sessions are given back meanwhile
    3   automatic commit of what the application came back from           as a member, before the partitions go
        (`delivered.py`)
    4   callbacks and interceptors of all of these                        as a member, so that they may commit
    5   the listener gives up the partitions                              as a member, so that it may commit
    6   what these two have committed gets its answers                    as a member still
    7   LeaveGroup                                                        soon: the others wait for the partitions
    8   callbacks and interceptors of 6; no commit_async any more         nothing would be left to answer it
    9   tasks, then connections                                           all of the above needed them
    10  interceptors and deserializers are closed                         all of the above may have used them

    unsubscribe                                                           wakeups are left for the next call

    1   callbacks that are due
    2   the listener gives up the partitions
    3   commits under way, the listener's included, get their answers
    4   LeaveGroup
    5   assignment and subscription are dropped
    6   callbacks of 3

A step that fails does not keep the next from its turn; the first error of the user's code is raised at the end, one
that a poll has kept goes before it. Every step is bounded by what is left of the timeout, and some of it is kept for
LeaveGroup (`group.py`). A commit without an answer at the end of 2 or 6 fails with CommitFailedError (closed), so
that every callback runs. Where no broker can be reached any more, commits are given up after a second
(`BrokersUnreachable`).

A cluster whose every broker refuses connections is rarely back within a moment: the final commit is given up soon.

What is not committed is read again, so nothing is lost by giving up; waiting for the whole timeout would look like
a hang.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final

from kclient.config.plugins import close_deserializer
from kclient.consumer.callbacks import CallbackQueue, error_of
from kclient.consumer.core import ConsumerCore
from kclient.consumer.group import LEAVING_SECONDS, before_leaving
from kclient.consumer.poll import Poll
from kclient.consumer.subscription import SubscriptionKind
from kclient.log import get_logger
from kclient.network.cluster import Cluster
from kclient.runtime import Runtime

log = get_logger("kclient.consumer")

CLOSING: Final = "the consumer is being closed"
LAST_SECONDS: Final = 1.0  # for interceptors and deserializers, however late it is
PATIENCE_SECONDS: Final = 1.0  # before brokers that refuse connections count as unreachable


async def close(
    core: ConsumerCore, polls: Poll, timeout: float, *, clean: bool, leave: bool | None = None
) -> None:
    """End the consumer. A clean close commits the delivered records; a close after an error leaves them out.

    `leave`: whether to send LeaveGroup. None: a dynamic member sends it, a static one does not (KIP-1092).

    A cancelled close ends within about LEAVING_SECONDS: it sends LeaveGroup and does not call the listener. If it is
    cancelled again, this continues in the background.
    """
    now = core.runtime.now()
    deadline = now + timeout
    first_error: BaseException | None = None
    core.timeouts.close()
    try:
        await polls.wait_until_left(before_leaving(deadline, now) - now)
        running = core.running
        if running:
            ended = core.tasks.spawn("ending of fetch sessions", core.fetcher.end_sessions(deadline))
        first_error = await _part_from_group(core, deadline, running=running, clean=clean, leave=leave)
        if running:
            await asyncio.wait({ended})
    except asyncio.CancelledError:
        deadline = min(deadline, core.runtime.now() + LEAVING_SECONDS)
        raise
    finally:
        core.ending = asyncio.create_task(_end_of_close(core, deadline, leave), name="kclient end")
        await asyncio.shield(core.ending)
    if (error := polls.unraised_error() or first_error) is not None:
        raise error


async def abandon(core: ConsumerCore) -> None:
    """End the tasks of a garbage-collected consumer. It sends no LeaveGroup: the session timeout removes the member."""
    core.timeouts.close()
    await _end_what_runs(core, core.runtime.now())


async def unsubscribe(core: ConsumerCore, *, clean: bool = True) -> None:
    """Give up the assignment and the subscription; commit nothing automatically.

    What is subscribed to meanwhile, by a listener or another task, stays: this call ends what was there before it.
    A wakeup is left for the next call: the listener's commits are not cut short. After an error, `clean` is false and
    these commits leave out what is in hand, as those of a close do.
    """
    delivered = core.delivered
    before, delivered.half_processed = delivered.half_processed, delivered.half_processed or not clean
    try:
        with core.timeouts.undisturbed():
            await _unsubscribe(core)
    finally:
        delivered.half_processed = before


async def _unsubscribe(core: ConsumerCore) -> None:
    group, choice = core.group_or_none, core.subscription.choice
    callbacks_error = await error_of(core.callbacks.run()) if group is not None else None
    try:
        if group is not None:
            deadline = core.runtime.now() + core.config.request_timeout_ms / 1000
            await group.leave("the consumer unsubscribed from all topics", deadline)
    finally:
        _follow_what_is_left(core, choice)
    if group is not None:
        await core.rebalance_steps.run()
        await core.callbacks.run()
    if callbacks_error is not None:
        raise callbacks_error


def _follow_what_is_left(core: ConsumerCore, ended: int) -> None:
    subscription = core.subscription
    if subscription.choice == ended:
        subscription.clear()
    if subscription.kind is not SubscriptionKind.MANUAL:
        core.set_assignment(())
    core.follow_subscription()


async def _part_from_group(
    core: ConsumerCore, deadline: float, *, running: bool, clean: bool, leave: bool | None
) -> Exception | None:
    """Commit, leave, and run every callback; the first error that the user's code raised.

    A consumer that was not connected yet may have asynchronous commits all the same.
    """
    group = core.group_or_none
    if group is None:
        return None
    offsets = core.consumed() if clean else core.committable()
    if not clean and group.rebalance.invoker.method is None:
        # A listener that another call runs was called before this close began: its commit stores what that call would.
        core.delivered.half_processed = True
    until = before_leaving(deadline, core.runtime.now())
    give_up = BrokersUnreachable(core.cluster, core.runtime).for_good
    await group.commits.end(until, give_up)
    if running:
        await group.last_commit(offsets, _left(core, until), give_up)
    errors = [
        await _all_callbacks(core, until),
        await _step(group.leave(CLOSING, core.runtime.now() + _left(core, deadline), leave), deadline),
        await _step(_run_all(core.rebalance_steps), deadline),
    ]
    await group.commits.end(deadline, give_up)
    group.commits.refuse_more()
    errors.append(await _all_callbacks(core, deadline))
    return next(filter(None, errors), None)


async def _all_callbacks(core: ConsumerCore, deadline: float) -> Exception | None:
    """Callbacks of commits have some time, however late it is. The first error that one raised."""
    return await _step(_run_all(core.callbacks), max(deadline, core.runtime.now() + LAST_SECONDS))


async def _run_all(work: CallbackQueue) -> None:
    """All of it, in whose turn an error of the one before makes no difference; raises the first of them at the end."""
    errors = []
    while work and not work.running:
        errors.append(await error_of(work.run()))
    if first := next(filter(None, errors), None):
        raise first


async def _step(step: Awaitable[None], deadline: float) -> Exception | None:
    """One step; what it raised of the user's. A step that ran out of time is only logged."""
    try:
        async with asyncio.timeout_at(deadline) as scope:
            await step
    except TimeoutError as exc:
        if not scope.expired():
            return exc
        log.warning("close() ran out of time; the rest is cut short")
    except Exception as exc:  # noqa: BLE001 – raised at the very end
        return exc
    return None


async def _end_of_close(core: ConsumerCore, deadline: float, leave: bool | None) -> None:
    """The end of every close, however far it came: be gone from the group, end what runs, close what is the user's."""
    await core.stop_starting()  # it would join
    if core.group_or_none is not None:
        await core.group.be_gone(CLOSING, deadline, leave)
    await _end_what_runs(core, deadline)
    until = max(deadline, core.runtime.now() + LAST_SECONDS)
    await _step(core.interceptors.close(), until)
    await _step(_close_deserializers(core), until)


async def _end_what_runs(core: ConsumerCore, deadline: float) -> None:
    await core.stop_starting()
    await core.tasks.stop()
    if core.group_or_none is not None:
        await core.group.coordinator.close()
    await core.cluster.close(_left(core, deadline))
    core.set_assignment(())
    core.metrics.close()


async def _close_deserializers(core: ConsumerCore) -> None:
    for function in (core.config.key_deserializer, core.config.value_deserializer):
        try:
            await core.call_user(close_deserializer, function)
        except Exception:
            log.exception("closing a deserializer failed")


def _left(core: ConsumerCore, deadline: float) -> float:
    """Seconds left, at most one request timeout."""
    left = max(0.0, deadline - core.runtime.now())
    return min(left, core.config.request_timeout_ms / 1000)


class BrokersUnreachable:
    """Asked after each try that failed. Until one second has passed, the brokers may come back."""

    def __init__(self, cluster: Cluster, runtime: Runtime) -> None:
        self._cluster = cluster
        self._runtime = runtime
        self._began = runtime.now()
        self._refused = False  # by every broker, since one was connected

    def for_good(self) -> bool:
        """Whether every broker has been tried in vain, and no connection came about since."""
        self._refused = not self._cluster.in_touch and (self._refused or self._cluster.out_of_reach)
        return self._refused and self._runtime.now() - self._began >= PATIENCE_SECONDS

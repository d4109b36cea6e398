"""close() and unsubscribe(): what happens in which order, and why.

    close                                                                 why then

    1   other calls that wait raise ClosedError; wakeups end              no two tasks run the user's code; a wakeup
                                                                          would cut the commits below short
    2   commits under way get their responses, connected yet or not;      the next commit must not overtake them
        fetch sessions are given back meanwhile
    3   automatic commit of the processed records (`delivered.py`)        as a member, before the partitions go
    4   callbacks and interceptors of all of these                        as a member, so that they may commit
    5   on_partitions_revoked or _lost                                    as a member, so that it may commit
    6   commits of 4 and 5 get their responses                            as a member still
    7   LeaveGroup                                                        soon: the others wait for the partitions
    8   callbacks and interceptors of 6; no commit_async any more         nothing would be left to answer it
    9   tasks, then connections                                           all of the above needed them
    10  interceptors and deserializers are closed                         all of the above may have used them

    unsubscribe                                                           wakeups are left for the next call

    1   callbacks that are due
    2   on_partitions_revoked or _lost
    3   commits under way, the listener's included, get their responses
    4   LeaveGroup
    5   assignment and subscription are dropped
    6   callbacks of 3

A step that fails does not stop the next one. The first error of the user's code is raised at the end; an error that a
poll has stored and not raised comes first. Every step is bounded by the rest of the timeout, of which a part is
reserved for LeaveGroup (`group.py`). A commit without a response at the end of 2 or 6 fails with CommitFailedError
(closed), so that every callback runs.

Commits are given up when every broker has refused connections for a second (`BrokersUnreachable`): such a cluster
rarely comes back in time, and waiting for the whole timeout would look like a hang. Nothing is lost by giving up, since
records that are not committed are read again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final

from kclient.config.plugins import close_deserializer
from kclient.consumer.callbacks import CallbackQueue, error_of
from kclient.consumer.core import ConsumerCore
from kclient.consumer.group import LEAVING_SECONDS, deadline_before_leaving
from kclient.consumer.subscription import SubscriptionKind
from kclient.log import get_logger
from kclient.network.cluster import Cluster
from kclient.runtime import Runtime

log: Final = get_logger("kclient.consumer")

CLOSING: Final = "the consumer is being closed"
LAST_SECONDS: Final = 1.0  # for interceptors and deserializers, however late it is
UNREACHABLE_SECONDS: Final = 1.0  # before brokers that refuse connections count as unreachable


async def close(core: ConsumerCore, timeout: float, *, clean: bool, leave: bool | None = None) -> None:
    """End the consumer. A clean close commits the delivered records; a close after an error leaves them out.

    `leave`: whether to send LeaveGroup. None: a dynamic member sends it, a static one does not (KIP-1092).

    A cancelled close ends within about LEAVING_SECONDS: it sends LeaveGroup and does not call the listener. If it is
    cancelled again, this continues in the background.
    """
    now = core.runtime.now()
    deadline = now + timeout
    first_error: BaseException | None = None
    core.timeouts.close()  # 1
    try:
        await core.polls.wait_until_ended(deadline_before_leaving(deadline, now) - now)
        running = core.lifecycle.running
        if running:  # the fetch sessions of 2 end beside all steps of the group
            ended = core.tasks.spawn("ending of fetch sessions", core.fetcher.close_sessions(deadline))
        first_error = await _leave_group(core, deadline, running=running, clean=clean, leave=leave)  # 2 to 8
        if running:
            await asyncio.wait({ended})
    except asyncio.CancelledError:
        # LeaveGroup is sent all the same: the other members wait for the partitions.
        deadline = min(deadline, core.runtime.now() + LEAVING_SECONDS)
        raise
    finally:
        # A task of its own, which a second cancellation of the caller does not stop.
        core.lifecycle.ending = asyncio.create_task(_end(core, deadline, leave), name="kclient end")  # 9, 10
        await asyncio.shield(core.lifecycle.ending)
    if (error := core.polls.unraised_error() or first_error) is not None:
        raise error


async def abandon(core: ConsumerCore) -> None:
    """End the tasks of a garbage-collected consumer. It sends no LeaveGroup: the session timeout removes the member."""
    core.timeouts.close()
    await _stop_everything(core, core.runtime.now())


async def unsubscribe(core: ConsumerCore, *, clean: bool = True) -> None:
    """Leave the group and drop the assignment and the subscription. Commit nothing automatically.

    A subscription that a listener or another task makes meanwhile stays. A wakeup is left for the next call, so that it
    does not cut the listener's commits short. After an error `clean` is false: these commits leave out the delivered
    records, as those of a close do.
    """
    delivered = core.assigned.delivered
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
            await group.leaving.leave("the consumer unsubscribed from all topics", deadline)
    finally:
        _end_subscription(core, choice)
    if group is not None:
        await core.rebalance_steps.run()
        await core.callbacks.run()
    if callbacks_error is not None:
        raise callbacks_error


def _end_subscription(core: ConsumerCore, ended: int) -> None:
    subscription = core.subscription
    if subscription.choice == ended:
        subscription.clear()
    if subscription.kind is not SubscriptionKind.MANUAL:
        core.assigned.assign(())
    core.subscription_updater.follow_subscription()


async def _leave_group(
    core: ConsumerCore, deadline: float, *, running: bool, clean: bool, leave: bool | None
) -> Exception | None:
    """Steps 2 to 8: commit, leave, and run every callback. Return the first error that the user's code raised.

    A consumer that was not connected yet may have asynchronous commits all the same.
    """
    group = core.group_or_none
    if group is None:
        return None
    offsets = core.assigned.consumed() if clean else core.assigned.committable()
    if not clean and group.rebalance.invoker.method is None:
        # A listener that another call runs was called before this close began: its commit stores what that call would.
        core.assigned.delivered.half_processed = True
    commit_deadline = deadline_before_leaving(deadline, core.runtime.now())
    give_up = BrokersUnreachable(core.cluster, core.runtime).for_good
    # 2: responses to commits under way
    await group.commits.end(commit_deadline, give_up)
    # 3: the automatic commit
    if running:
        await group.final_auto_commit(offsets, _seconds_left(core, commit_deadline), give_up)
    errors = [
        # 4: callbacks, while this is still a member
        await _all_callbacks(core, commit_deadline),
        # 5 to 7: the listener, the responses to its commits, LeaveGroup; then an on_partitions_lost that was deferred
        await _step(
            group.leaving.leave(CLOSING, core.runtime.now() + _seconds_left(core, deadline), leave), deadline
        ),
        await _step(_run_all(core.rebalance_steps), deadline),
    ]
    # 8: callbacks of commits of 4 to 6
    await group.commits.end(deadline, give_up)
    group.commits.refuse_more()
    errors.append(await _all_callbacks(core, deadline))
    return next(filter(None, errors), None)


async def _all_callbacks(core: ConsumerCore, deadline: float) -> Exception | None:
    """Run the callbacks of commits, for LAST_SECONDS even after the deadline. Return the first error."""
    return await _step(_run_all(core.callbacks), max(deadline, core.runtime.now() + LAST_SECONDS))


async def _run_all(work: CallbackQueue) -> None:
    """Run all queued work, also after one has raised. Raise the first error at the end."""
    errors = []
    while work and not work.running:
        errors.append(await error_of(work.run()))
    if first := next(filter(None, errors), None):
        raise first


async def _step(step: Awaitable[None], deadline: float) -> Exception | None:
    """Run one step and return the error that it raised. Log a step that ran out of time."""
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


async def _end(core: ConsumerCore, deadline: float, leave: bool | None) -> None:
    """Steps 9 and 10, also of a close that was cut short: leave the group, stop the tasks, close the interceptors."""
    await core.lifecycle.cancel_start()  # it would join
    if core.group_or_none is not None:
        await core.group.leaving.leave_at_once(CLOSING, deadline, leave)
    await _stop_everything(core, deadline)
    last_deadline = max(deadline, core.runtime.now() + LAST_SECONDS)
    await _step(core.interceptors.close(), last_deadline)
    await _step(_close_deserializers(core), last_deadline)


async def _stop_everything(core: ConsumerCore, deadline: float) -> None:
    await core.lifecycle.cancel_start()
    await core.tasks.stop()
    if core.group_or_none is not None:
        await core.group.coordinator.close()
    await core.cluster.close(_seconds_left(core, deadline))
    core.assigned.assign(())
    core.metrics.close()


async def _close_deserializers(core: ConsumerCore) -> None:
    for function in (core.config.key_deserializer, core.config.value_deserializer):
        try:
            await core.call_user(close_deserializer, function)
        except Exception:
            log.exception("closing a deserializer failed")


def _seconds_left(core: ConsumerCore, deadline: float) -> float:
    """Return the seconds until the deadline, at most one request timeout."""
    left = max(0.0, deadline - core.runtime.now())
    return min(left, core.config.request_timeout_ms / 1000)


class BrokersUnreachable:
    """Decides after each failed try whether the brokers are gone. They have one second to come back."""

    def __init__(self, cluster: Cluster, runtime: Runtime) -> None:
        self._cluster = cluster
        self._runtime = runtime
        self._began = runtime.now()
        self._refused = False  # by every broker, since the last connection

    def for_good(self) -> bool:
        """Return whether every broker has refused connections since the last connection, for at least a second."""
        self._refused = not self._cluster.has_connection and (self._refused or self._cluster.all_unreachable)
        return self._refused and self._runtime.now() - self._began >= UNREACHABLE_SECONDS

"""Bugs of members of classic groups, M-52 to M-77."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakKeyDictionary

import attrs

from kclient.consumer.callbacks import ASSIGNED, REVOKED, CallbackQueue
from kclient.consumer.group import Leaving
from kclient.consumer.listener_invoker import RebalanceListenerInvoker
from kclient.consumer.membership import CurrentMembership
from kclient.consumer.poll import Poll
from kclient.errors import KclientError
from kclient.generated.heartbeat_response import HeartbeatResponse
from kclient.generated.join_group_response import JoinGroupResponse
from kclient.group.classic import leader, member
from kclient.group.classic.heartbeat import HeartbeatTask
from kclient.group.classic.leader import SubscriptionTracker
from kclient.group.classic.member import ClassicMembership
from kclient.group.classic.rebalance import JoinGroup
from kclient.group.classic.state import RejoinPolicy, code_of
from kclient.group.coordinator import Coordinator
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
from tests.simulation.mutants import plans, scripts
from tests.simulation.mutants.table import Patch, mutant

FOR_EVER = 1e6


def only_beat_if(patch: Patch, allowed: Any) -> None:
    """Let a heartbeat that is due be sent only where `allowed(heartbeats)`, and otherwise count as answered."""

    async def beat(self: HeartbeatTask, session_ends: float, poll_ends: float) -> None:
        if allowed(self):
            await before(self, session_ends, poll_ends)
            return
        self._due = self._runtime.now() + self._interval
        self._answered()

    before = patch.put(HeartbeatTask, "_send_heartbeat", beat)


def heartbeats_of(poll: Poll) -> Any:
    """The heartbeats of the consumer that polls, None where it is no member."""
    group = poll._steps._group
    return None if group is None or group.membership.current is None else group.membership.current._heartbeats  # type: ignore[attr-defined]


@mutant("M-52", "I-28", "I-27", seed=148)
def no_heartbeats(patch: Patch) -> None:
    """Never send a heartbeat."""
    only_beat_if(patch, lambda heartbeats: False)


@mutant("M-53", "I-28", "I-27", seed=164)
def heartbeat_with_records(patch: Patch) -> None:
    """Send a heartbeat only if records came since the last one."""

    async def poll(self: Poll, timeout: float, next_records: Any) -> Any:
        records = await before(self, timeout, next_records)
        if records.chunks and (heartbeats := heartbeats_of(self)) is not None:
            heartbeats.fed = True
        return records

    def fed(heartbeats: Any) -> bool:
        was, heartbeats.fed = getattr(heartbeats, "fed", False), False
        return was

    before = patch.put(Poll, "_poll", poll)
    only_beat_if(patch, fed)


@mutant("M-54", "I-28", look=scripts.busy_application)
def heartbeat_in_polls(patch: Patch) -> None:
    """Send heartbeats only while the application is inside of a poll."""

    async def poll(self: Poll, timeout: float, max_records: int, **more: Any) -> Any:
        try:
            return await before(self, timeout, max_records, **more)
        finally:
            if (heartbeats := heartbeats_of(self)) is not None:
                heartbeats.away = True

    def begin(self: Poll, **more: Any) -> None:
        if (heartbeats := heartbeats_of(self)) is not None:
            heartbeats.away = False
        begun(self, **more)

    before = patch.put(Poll, "poll", poll)
    begun = patch.put(Poll, "_begin", begin)
    only_beat_if(patch, lambda heartbeats: not getattr(heartbeats, "away", False))


@mutant("M-55", "I-12", look=plans.looking_at(plans.TURNS))
def reset_by_rebalance(patch: Patch) -> None:
    """Forget generation and member id when a heartbeat is answered with REBALANCE_IN_PROGRESS."""

    def judge(self: HeartbeatTask, code: int, sent: Any) -> None:
        if code == codes.REBALANCE_IN_PROGRESS:
            self._status.reset("group is already rebalancing")
        else:
            before(self, code, sent)

    before = patch.put(HeartbeatTask, "_handle_code", judge)


@mutant("M-56", "I-27", look=scripts.slow_partner)
def impatient_join(patch: Patch) -> None:
    """Wait for the response to JoinGroup no longer than for any other."""

    async def request(self: Coordinator, response: Any, *forms: Any, **more: Any) -> Any:
        if response is JoinGroupResponse:
            more["timeout"] = None
        return await before(self, response, *forms, **more)

    before = patch.put(Coordinator, "request", request)


@mutant("M-57", "I-27", "I-02", seed=164)
def member_id_ignored(patch: Patch) -> None:
    """Join again without the member id that MEMBER_ID_REQUIRED gave."""

    def refused(self: JoinGroup, response: Any, sent: Any) -> KclientError:
        if response.error_code == codes.MEMBER_ID_REQUIRED:
            return self._error(response.error_code)
        return before(self, response, sent)  # type: ignore[no-any-return]

    before = patch.put(JoinGroup, "_handle_error", refused)


@mutant("M-58", "I-09", seed=3)
def lost_as_revoked(patch: Patch) -> None:
    """Call on_partitions_revoked for partitions that are lost."""

    async def lose(self: RebalanceListenerInvoker, lost: Any) -> None:
        if lost:
            await self.revoke(lost)

    patch.put(RebalanceListenerInvoker, "lose", lose)


@mutant("M-59", "I-12", look=plans.looking_at(plans.TURNS))
def assigned_first(patch: Patch) -> None:
    """Call on_partitions_revoked after on_partitions_assigned."""

    async def invoke(self: RebalanceListenerInvoker, method: str, partitions: Any, listener: Any) -> None:
        if method == REVOKED and not getattr(self, "leaving", False):
            self.late = partitions  # type: ignore[attr-defined]
            return
        await before(self, method, partitions, listener)
        if method == ASSIGNED and hasattr(self, "late"):
            late = self.late
            del self.late
            await before(self, REVOKED, late, listener)

    async def revoke(self: Leaving, *args: Any) -> Any:
        self._rebalance.invoker.leaving = True  # type: ignore[attr-defined]
        try:
            return await revoked(self, *args)
        finally:
            self._rebalance.invoker.leaving = False  # type: ignore[attr-defined]

    before = patch.put(RebalanceListenerInvoker, "_invoke", invoke)
    revoked = patch.put(Leaving, "_revoke", revoke)


@mutant("M-60", "I-12", seed=2)
def callbacks_beside_polls(patch: Patch) -> None:
    """Run listeners as soon as the group wants it, and not inside of a call of the application's."""

    async def call(self: CallbackQueue, work: Any) -> Any:
        return await work()

    patch.put(CallbackQueue, "call", call)


@mutant("M-61", "I-25", "I-22", "I-27", "I-28", seed=95)
def callback_wedges(patch: Patch) -> None:
    """Go on with a rebalance only if the listener did not raise."""

    async def do(self: CallbackQueue, item: Any) -> None:
        result = await item.work()
        if not item.done.done():
            item.done.set_result(result)

    patch.put(CallbackQueue, "_run_item", do)


@mutant("M-62", "I-12", seed=59)
def commit_ahead(patch: Patch) -> None:
    """Commit inside of on_partitions_revoked under the generation that comes next."""

    def identity(self: CurrentMembership) -> Any:
        found = before(self)
        if getattr(self, "calls", None) == REVOKED and found.generation_id >= 0:
            return attrs.evolve(found, generation_id=found.generation_id + 1)
        return found

    async def invoke(self: RebalanceListenerInvoker, method: str, *args: Any) -> None:
        self._membership.calls = method  # type: ignore[attr-defined]
        try:
            await invoked(self, method, *args)
        finally:
            self._membership.calls = None  # type: ignore[attr-defined]

    before = patch.put(CurrentMembership, "commit_identity", identity)
    invoked = patch.put(RebalanceListenerInvoker, "_invoke", invoke)


@mutant("M-66", "I-02", seed=91)
def stale_leader(patch: Patch) -> None:
    """Share out the partitions that the leader saw when it led for the first time."""
    first: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def racks_of(metadata: Any, topics: Any, *, by_rack: bool) -> Any:
        found = before(metadata, topics, by_rack=by_rack)
        return first.setdefault(metadata, found) if found else found

    before = patch.put(leader, "racks_of", racks_of)


@mutant("M-67", "I-10", seed=164)
def assigned_twice(patch: Patch) -> None:
    """Give a partition of the first member to the last one as well."""

    def make_plan(assignor: Any, topics: Any, members: Any) -> Any:
        plan = dict(before(assignor, topics, members))
        parts = [member_id for member_id, part in plan.items() if part.partitions]
        if len(plan) > 1 and parts:
            taken, other = plan[parts[0]], next(reversed([one for one in plan if one != parts[0]]))
            more = (*plan[other].partitions, taken.partitions[0])
            plan[other] = attrs.evolve(plan[other], partitions=more)
        return plan

    before = patch.put(leader, "make_plan", make_plan)


@mutant("M-69", "I-26", "I-27", look=plans.looking_at(plans.MOVED_MEANWHILE))
def same_coordinator(patch: Patch) -> None:
    """Ask the same broker again when it answers NOT_COORDINATOR."""

    def mark_unknown(self: Coordinator, reason: str, node_id: int | None = None) -> None:
        if "NOT_COORDINATOR" not in reason:
            before(self, reason, node_id)

    before = patch.put(Coordinator, "mark_unknown", mark_unknown)


@mutant("M-70", "I-27", look=scripts.silent_coordinator)
def dead_connection(patch: Patch) -> None:
    """Wait for the response to a heartbeat for ever, however dead its connection is."""

    async def request(self: Coordinator, response: Any, *forms: Any, **more: Any) -> Any:
        if response is HeartbeatResponse:
            more["timeout"] = FOR_EVER
        return await before(self, response, *forms, **more)

    before = patch.put(Coordinator, "request", request)


@mutant("M-71", "I-17", seed=312)
def fenced_goes_on(patch: Patch) -> None:
    """Join again when another consumer has our instance id."""

    async def recover(self: RejoinPolicy, error: KclientError) -> None:
        if code_of(error) == codes.FENCED_INSTANCE_ID:
            await self.pause()
        else:
            await before(self, error)

    def keep(self: RejoinPolicy, error: KclientError) -> None:
        if code_of(error) != codes.FENCED_INSTANCE_ID:
            kept(self, error)

    before = patch.put(RejoinPolicy, "recover", recover)
    kept = patch.put(RejoinPolicy, "store_error", keep)


@mutant("M-72", "I-17", seed=69)
def static_leaves(patch: Patch) -> None:
    """Send LeaveGroup for a static member that is closed."""

    patch.put(member, "sends_leave", lambda leave, instance_id: True)


@mutant("M-73", "I-28", look=scripts.absent_application)
def no_poll_limit(patch: Patch) -> None:
    """Stay a member however long the application does not poll."""

    async def round_(self: HeartbeatTask, seen: int) -> None:
        self._poll_timer._interval = FOR_EVER
        await before(self, seen)

    before = patch.put(HeartbeatTask, "_run_once", round_)


@mutant("M-74", "I-28", "I-22", seed=94)
def never_back(patch: Patch) -> None:
    """Do not join again after the application had not polled in time."""

    async def poll_expired(self: ClassicMembership) -> None:
        await before(self)
        self._subscription.unsubscribe()

    before = patch.put(ClassicMembership, "_poll_expired", poll_expired)


@mutant("M-75", "I-27", seed=164)
def rejoin_by_refresh(patch: Patch) -> None:
    """Have the leader rejoin with every refresh of the metadata, whether its topics have changed or not."""
    versions: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

    def why_rejoin(self: SubscriptionTracker, metadata: Any) -> str | None:
        seen = versions.get(metadata, metadata.version)
        versions[metadata] = metadata.version
        if self.assignment_snapshot is not None and seen != metadata.version:
            return "the metadata was refreshed"
        return before(self, metadata)  # type: ignore[no-any-return]

    before = patch.put(SubscriptionTracker, "rejoin_reason_for", why_rejoin)


@mutant("M-76", "I-18", "I-12", seed=275)
def session_by_wall_clock(patch: Patch) -> None:
    """Measure the session's time with the wall clock, and start again when it is over."""

    def answered(self: HeartbeatTask) -> None:
        before(self)
        self.wall = self._runtime.wall_ms()  # type: ignore[attr-defined]

    def enable(self: HeartbeatTask) -> None:
        enabled(self)
        self.wall = self._runtime.wall_ms()  # type: ignore[attr-defined]

    async def round_(self: HeartbeatTask, seen: int) -> None:
        if (
            self._runtime.wall_ms() - getattr(self, "wall", self._runtime.wall_ms())
            > self._session_timeout * 1000
        ):
            self.wall = self._runtime.wall_ms()  # type: ignore[attr-defined]
            self._status.reset("the session is over")
        else:
            await rounded(self, seen)

    before = patch.put(HeartbeatTask, "_answered", answered)
    enabled = patch.put(HeartbeatTask, "enable", enable)
    rounded = patch.put(HeartbeatTask, "_run_once", round_)


@mutant("M-77", "I-27", "I-22", seed=46)
def poll_cancels_join(patch: Patch) -> None:
    """Give up a JoinGroup that is under way when a poll times out."""

    async def join(self: JoinGroup, topics: Any) -> Any:
        joining = asyncio.ensure_future(before(self, topics))
        self._coordinator.joining = joining  # type: ignore[attr-defined]
        try:
            await asyncio.wait([joining])
        finally:
            joining.cancel()
        if joining.cancelled():
            raise broker_error(codes.REBALANCE_IN_PROGRESS, "Joining")
        return joining.result()

    async def poll(self: Poll, timeout: float, max_records: int, **more: Any) -> Any:
        records = await polled(self, timeout, max_records, **more)
        group = self._steps._group
        joining = None if group is None else getattr(group.coordinator, "joining", None)
        if not records and joining is not None:
            joining.cancel()
        return records

    before = patch.put(JoinGroup, "join", join)
    polled = patch.put(Poll, "poll", poll)

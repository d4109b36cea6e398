"""Bugs of members of the consumer protocol (KIP-848), M-78 to M-84."""

from __future__ import annotations

from typing import Any

from kclient.errors import CommitFailedError
from kclient.group.consumer_protocol.assignment import AssignmentTracker, LocalAssignment, ReconciliationStep
from kclient.group.consumer_protocol.heartbeat import ConsumerHeartbeatTask
from kclient.group.consumer_protocol.member import ConsumerMembership, ReconciliationLoop
from kclient.group.consumer_protocol.state import ConsumerMemberState
from kclient.group.offset_commit import OffsetCommitter
from kclient.protocol import errors as codes
from tests.simulation.mutants import plans
from tests.simulation.mutants.table import Patch, mutant

OWN_INTERVAL = 60.0
FENCED = (codes.FENCED_MEMBER_EPOCH, codes.UNKNOWN_MEMBER_ID)


@mutant("M-78", "I-09", "I-28", look=plans.looking_at(plans.TOO_SLOW))
def epoch_restored(patch: Patch) -> None:
    """Take the epoch of a response that comes when the member has left because the application did not poll."""

    async def poll_expired(self: ConsumerMembership) -> None:
        epoch = self._status.epoch
        await before(self)
        self._status.epoch = epoch

    before = patch.put(ConsumerMembership, "_poll_expired", poll_expired)


@mutant("M-79", "I-10", look=plans.looking_at(plans.SLOW_LISTENERS))
def acknowledged_early(patch: Patch) -> None:
    """Acknowledge a revocation to the coordinator while the listener still has the partitions."""

    async def take(self: ReconciliationLoop, step: ReconciliationStep) -> None:
        if not step.same:
            owned = self._assignments.owned
            kept = {
                one: step.owned.partitions[one] for one in owned.partitions if one in step.owned.partitions
            }
            self._assignments.owned = LocalAssignment(owned.local_epoch, kept)
            self._status.send_now = True
            self._status.changed.notify()
        await before(self, step)

    before = patch.put(ReconciliationLoop, "_reconcile", take)


@mutant("M-80", "I-10", look=plans.looking_at(plans.SLOW_LISTENERS))
def target_is_owned(patch: Patch) -> None:
    """Report the target assignment to the coordinator as owned at once."""

    def next_(self: ConsumerHeartbeatTask) -> Any:
        found, owned = self._assignments, self._assignments.owned
        found.owned = LocalAssignment(found.local_epoch, found.target)
        try:
            return before(self)
        finally:
            found.owned = owned

    before = patch.put(ConsumerHeartbeatTask, "_build_request", next_)


@mutant("M-81", "I-23", "I-26", look=plans.looking_at(plans.STALE))
def stale_for_ever(patch: Patch) -> None:
    """Commit again and again under an epoch that the coordinator calls stale."""

    async def commit(self: OffsetCommitter, offsets: Any, **options: Any) -> None:
        identity = self._identity
        sent = identity()
        self._identity = lambda: sent
        try:
            while True:
                try:
                    await before(self, offsets, **options)
                except CommitFailedError as exc:
                    if exc.reason != "stale_epoch":
                        raise
                else:
                    return
        finally:
            self._identity = identity

    before = patch.put(OffsetCommitter, "commit", commit)


@mutant("M-82", "I-09", "I-10", look=plans.looking_at(plans.FENCED))
def fenced_keeps(patch: Patch) -> None:
    """Join again when fenced, and keep the partitions."""

    def judge(self: ConsumerHeartbeatTask, response: Any) -> None:
        if response.error_code not in FENCED or not self._status.in_group:
            before(self, response)
            return
        self._retry("it was fenced")
        self._status.state, self._status.epoch = ConsumerMemberState.JOINING, 0
        self._status.changed.notify()

    before = patch.put(ConsumerHeartbeatTask, "_handle_response", judge)


@mutant("M-83", "I-22", "I-02", look=plans.looking_at(plans.BY_PATTERN))
def nameless_dropped(patch: Patch) -> None:
    """Forget the topics of an assignment that metadata does not name yet."""

    def next_step(self: AssignmentTracker, name_of: Any) -> ReconciliationStep | None:
        gone = self.unresolved_topic_ids(name_of)
        self.target = {one: numbers for one, numbers in self.target.items() if one not in gone}
        return before(self, name_of)  # type: ignore[no-any-return]

    before = patch.put(AssignmentTracker, "next_step", next_step)


@mutant("M-84", "I-27", "I-28", look=plans.looking_at(plans.CALM))
def own_interval(patch: Patch) -> None:
    """Send heartbeats as often as the client likes, and not as the coordinator says."""

    def accept(self: ConsumerHeartbeatTask, response: Any) -> None:
        response.heartbeat_interval_ms = OWN_INTERVAL * 1000
        before(self, response)

    before = patch.put(ConsumerHeartbeatTask, "_accept", accept)

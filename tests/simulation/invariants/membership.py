"""How a group behaves: it converges, slow members leave and come back, short absences go unnoticed."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from kclient.embedded.received_request import ReceivedRequest
from kclient.types import TopicPartition
from tests.simulation.application import Member
from tests.simulation.bounds import convergence_seconds
from tests.simulation.grouping import instance_id_of
from tests.simulation.invariants.groups import HEARTBEAT, Owned, group_of, is_stable, name_of
from tests.simulation.invariants.windows import disturbed, keeps_partitions_back, others_than, stopped
from tests.simulation.plan import Fault
from tests.simulation.watch import Invariant

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

SLACK: Final = 1.0
SETTLED_SECONDS: Final = 15.0  # without a rebalance: every member knows its assignment
OF_CONNECTIONS: Final = ("close_idle", "finish_midway", "pieces", "reset", "reset_midway")
OF_BROKERS: Final = ("kill_broker", "shut_down_broker")
OF_MEMBERS: Final = ("kill_member",)


class Convergence(Invariant):
    """After everything has healed the group comes to rest, within two rebalances once no member comes or goes.

    New partitions, found by and by, are a reason for one more each.
    """

    id = "I-27"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.until: float | None = None
        self.members: frozenset[str] = frozenset()
        self.alike = 0
        self.changed_topic = False
        self.over = False

    def healed(self) -> None:
        scenario = self.stage.scenario
        self.until = self.stage.now + convergence_seconds(scenario)
        grown = self.changed_topic or len(self.stage.partitions()) > scenario.partitions
        if grown or keeps_partitions_back(self.stage):
            self.until += scenario.metadata_max_age_ms / 1000
        self.alike = 0

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        self.changed_topic = True

    def close_began(self, member: Member, timeout: float) -> None:
        self.over = self.over or self.stage.quiet

    def rebalanced(self, group_id: str, generation: int, owned: Owned) -> None:
        members = frozenset(owned)
        self.alike = self.alike + 1 if members == self.members else 0
        self.members = members
        if self.until is None or self.over:
            return
        if self.stage.now > self.until:
            self.broken(f"generation {generation} begins long after everything has healed")
        more = max(0, len(self.stage.partitions()) - self.stage.scenario.partitions)  # fewer: it is away
        allowed = 2 + more + 2 * self.changed_topic
        if self.alike > allowed:
            self.broken(f"generation {generation} is rebalance {self.alike} among the same members")

    def reconciled(self, group_id: str, member_id: str, epoch: int, owned: list[TopicPartition]) -> None:
        if self.until is not None and not self.over and self.stage.now > self.until:
            self.broken(f"{member_id} moves to epoch {epoch} long after everything has healed")

    def rested(self) -> None:
        if self.stage.scenario.manual:
            return
        group = group_of(self.stage)
        alive = {name for name, member in self.stage.members.items() if not member.over}
        if group is None or not is_stable(self.stage):
            self.broken(f"the group is {getattr(group, 'state', None)} when everything is at rest")
            return
        names = {name_of(self.stage, member_id) for member_id in group.members}  # type: ignore[attr-defined]
        if names != alive:
            self.broken(f"members are {sorted(names)}, alive are {sorted(alive)}")


class SlowMembers(Invariant):
    """Below max.poll.interval a member is not thrown out for being slow; above it leaves, exactly then."""

    id = "I-28"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.began_at: dict[str, float] = {}  # the last poll
        self.left_at: dict[str, float] = {}  # when it was over
        self.beats: dict[str, float] = {}

    def poll_ended(self, member: Member, count: int) -> None:
        self.left_at[str(member)] = self.stage.now

    def raised(self, member: Member, call: str, error: BaseException) -> None:
        self.left_at[str(member)] = self.stage.now

    def poll_began(self, member: Member, timeout: float) -> None:
        consumer, before = member.consumer, self.left_at.get(str(member))
        self.began_at[str(member)] = self.stage.now
        limit = self.stage.scenario.max_poll_interval_ms / 1000
        if before is None or consumer is None or self.stage.now - before <= limit + SLACK:
            return
        if consumer.group_metadata().generation_id >= 0 and not disturbed(self.stage, before):
            seconds = self.stage.now - before
            self.broken(f"{member} is a member after {seconds:.1f} s without a poll, {limit:g} are allowed")

    def logged(self, member: Member, record: logging.LogRecord) -> None:
        if "This member leaves" in str(record.msg) and "poll" not in member.inside:
            waited = self.stage.now - self._last_at(member)
            limit = self.stage.scenario.max_poll_interval_ms / 1000
            if waited < limit - self.stage.scenario.poll_timeout - SLACK:
                self.broken(f"{member} leaves after {waited:.3f} s without a poll, {limit:g} are allowed")

    def _last_at(self, member: Member) -> float:
        """When it was last in poll(). One that stood still inside began long before it went on, and both count."""
        began_at = self.began_at.get(str(member), 0.0)
        still = stopped(self.stage, member.name, began_at)
        return began_at if still else self.left_at.get(str(member), 0.0)

    def requested(self, call: ReceivedRequest) -> None:
        if call.api in ("Heartbeat", HEARTBEAT):
            self.beats[call.client_id] = self.stage.now

    def rested(self) -> None:
        if self.stage.scenario.manual:
            return
        interval = self.stage.scenario.heartbeat_interval_ms / 1000
        for name, member in self.stage.members.items():
            silent = self.stage.now - self.beats.get(name, 0.0)
            if not member.over and silent > 2 * interval + 2 * SLACK:
                self.broken(
                    f"{member} has sent no heartbeat for {silent:.1f} s, the interval is {interval:g}"
                )


class Unnoticed(Invariant):
    """What is over within the session timeout causes no rebalance: restarts of brokers, cut connections.

    Looked at where the plan holds nothing else, and once the group has been at rest. Then a generation of the same
    members has no reason. Where racks count, one has: a broker that is away takes its own along (B.13.2).
    """

    id = "I-31"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.applies = self._applies() and not stage.scenario.racks
        self.generation = -1
        self.names: list[str] = []
        self.ids: set[str] = set()
        self.at = 0.0
        self.partitions = 0

    def _applies(self) -> bool:
        scenario = self.stage.scenario
        harmless = (*OF_CONNECTIONS, *OF_BROKERS)
        calm = (
            not scenario.fidgety
            and scenario.process_seconds < 0.1
            and not any(others_than(self.stage, harmless))
        )
        return (
            calm
            and all(self._is_short(fault) for fault in self.stage.plan.faults)
            and self._are_apart(harmless)
        )

    def _is_short(self, fault: Fault) -> bool:
        session = self.stage.scenario.session_timeout_ms / 1000
        return fault.kind in OF_CONNECTIONS or fault.seconds + fault.amount / 1000 < session / 4

    def _are_apart(self, kinds: tuple[str, ...]) -> bool:
        """Absences that follow each other add up."""
        starts = [fault.start for fault in self.stage.plan.faults if fault.kind in kinds]
        session = self.stage.scenario.session_timeout_ms / 1000
        return all(later - earlier > session for earlier, later in pairwise(starts))

    def close_began(self, member: Member, timeout: float) -> None:
        self.applies = False

    def rebalanced(self, group_id: str, generation: int, owned: Owned) -> None:
        if generation == self.generation:
            return  # it goes on, a static member stepped into its old place
        self.ids = set(owned)
        self._begins(generation)

    def reconciled(self, group_id: str, member_id: str, epoch: int, owned: list[TopicPartition]) -> None:
        """The first member in an epoch shows that it has begun; who has come is in it already."""
        self.ids = self.ids | {member_id} if epoch >= 0 else self.ids - {member_id}
        if epoch > self.generation:
            self._begins(epoch)

    def _begins(self, generation: int) -> None:
        self.generation = generation
        names, since = sorted(map(self._who, self.ids)), self.stage.now - self.at
        if self.applies and names == self.names and since > SETTLED_SECONDS:
            self.broken(f"generation {generation} begins, and nothing has lasted as long as a session")
        self.names, self.at = names, self.stage.now

    def _who(self, member_id: str) -> str:
        return member_id


class StaticMembers(Unnoticed):
    """A static member that is back within its session timeout causes no rebalance."""

    id = "I-17"

    def _applies(self) -> bool:
        kinds = (*OF_CONNECTIONS, *OF_MEMBERS)
        if (
            not self.stage.scenario.static
            or any(others_than(self.stage, kinds))
            or self.stage.scenario.fidgety
            or not all(self._comes_back(fault) for fault in self.stage.plan.faults)
        ):
            return False
        return all(self._is_short(fault) for fault in self.stage.plan.faults) and self._are_apart(kinds)

    def _comes_back(self, fault: Fault) -> bool:
        """Whether who is killed is expected back; a member without an instance id is another one then."""
        return fault.kind not in OF_MEMBERS or instance_id_of(self.stage.scenario, fault.target) is not None

    def _who(self, member_id: str) -> str:
        return name_of(self.stage, member_id)


ALL = [Convergence, SlowMembers, Unnoticed, StaticMembers]

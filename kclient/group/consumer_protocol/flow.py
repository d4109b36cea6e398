"""Being a member of a group, consumer protocol: one straight line, again and again.

    while subscribed:
        join                the heartbeats do the talking
        while a member:
            target          wait until the coordinator wants us to own something else
            reconcile       the user gives up what goes and takes over what comes, in the caller's next polls
            acknowledge     the next heartbeat says at once what we own now
        give up             whatever ended the membership: all is lost, and the user hears of it with the next poll

Heartbeats go on beside it and end a membership that the coordinator does not know of any more.
"""

from __future__ import annotations

from kclient.change_signal import wait_any
from kclient.group.assignment_check import impossible_assignment, why_impossible
from kclient.group.consumer_protocol.assignment import Assignments, Step
from kclient.group.consumer_protocol.heartbeat import Heartbeats
from kclient.group.consumer_protocol.standing import Standing
from kclient.group.consumer_protocol.states import MemberState
from kclient.group.coordinator import Coordinator
from kclient.group.user import User
from kclient.log import get_logger
from kclient.metrics.coordinator import CoordinatorMetrics
from kclient.network.cluster import Cluster

logger = get_logger("kclient.group")


class MemberFlow:
    """What one member does about what its heartbeats bring."""

    def __init__(
        self,
        coordinator: Coordinator,
        cluster: Cluster,
        user: User,
        standing: Standing,
        assignments: Assignments,
        heartbeats: Heartbeats,
        metrics: CoordinatorMetrics,
    ) -> None:
        self._coordinator = coordinator
        self._cluster = cluster
        self._user = user
        self._standing = standing
        self._assignments = assignments
        self._heartbeats = heartbeats
        self._metrics = metrics
        self._refused_round = 0  # of an assignment that cannot be

    async def run(self) -> None:
        """Member again and again, until cancelled."""
        while True:
            await self._subscribed()
            self._heartbeats.begin()
            self._standing.enter(MemberState.JOINING)
            while self._standing.in_group:
                step = await self._next_step()
                if step is not None:
                    await self._take(step)
            await self._give_up()

    async def _subscribed(self) -> None:
        """Wait for a subscription. There is no way back from FATAL."""
        standing = self._standing
        while standing.wanted is None or standing.state is MemberState.FATAL:
            await standing.changed.wait(standing.changed.count)

    async def _next_step(self) -> Step | None:
        """Wait until there is something to do; None when the membership is over."""
        standing, metadata = self._standing, self._cluster.metadata
        asked_for: tuple[bytes, ...] = ()
        while standing.in_group:
            seen, seen_metadata = standing.changed.count, metadata.changed.count
            if standing.state is MemberState.RECONCILING and not self._heartbeats.owned_unanswered:
                self._keep_fresh()
                step = self._assignments.next_step(metadata.topic_name)
                if step is not None and self._is_possible(step):
                    return step
                asked_for = self._ask_for_names(asked_for)
            await wait_any((standing.changed, seen), (metadata.changed, seen_metadata))
        return None

    def _is_possible(self, step: Step) -> bool:
        """Whether what the coordinator wants can be; if not, metadata is asked, and nothing taken over before."""
        assigned = {step.names[one]: numbers for one, numbers in step.owned.partitions.items()}
        why = why_impossible(assigned, self._cluster.metadata)
        if why is None:
            return True
        if self._refused_round != step.owned.round:
            self._refused_round = step.owned.round
            logger.warning("%s", impossible_assignment(self._coordinator.group_id, why).text)
        self._cluster.request_update("the assignment names what is not known", reset_backoff=False)
        return False

    def _keep_fresh(self) -> None:
        """Only the coordinator knows the topics of its pattern: theirs is the metadata that is needed."""
        wanted = self._standing.wanted
        if wanted is not None and wanted.regex is not None:
            self._cluster.set_topic_ids((*self._assignments.target, *self._assignments.owned.partitions))

    def _ask_for_names(self, asked_for: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """Have metadata name the topics of the target that are not known."""
        nameless = self._assignments.nameless(self._cluster.metadata.topic_name)
        if nameless:
            self._cluster.request_update(
                f"{len(nameless)} topics that were assigned have no name yet",
                reset_backoff=nameless != asked_for,
            )
        return nameless

    async def _take(self, step: Step) -> None:
        """Make the step's partitions ours, and have the next heartbeat say so."""
        standing = self._standing

        def still() -> bool:
            outdated = self._assignments.round != step.owned.round or self._heartbeats.owned_unanswered
            return standing.in_group and not outdated

        if not step.same:
            self._metrics.rebalance_began()
            if not await self._user.reconcile(step.partitions, still):
                return  # a listener raised, or another target has come: again, if this is still a member
            self._metrics.reconciled(self._metrics.now())
        if standing.in_group:
            self._assignments.done(step)
            if standing.state is MemberState.RECONCILING:
                standing.enter(MemberState.ACKNOWLEDGING)

    async def _give_up(self) -> None:
        """All is lost. A member that was late, or fenced, joins anew behind it."""
        logger.info("group %s: not a member any more: %s", self._coordinator.group_id, self._standing.ended)
        if self._user.owned() or self._standing.state is MemberState.STALE:
            await self._user.prepare(lost=True)
        self._assignments.forget()
        self._standing.changed.notify()

"""Being a member of a group, classic protocol: one straight line, again and again.

    while subscribed:
        find the coordinator
        prepare     the user commits and gives partitions up, in the caller's next poll: all of them (eager),
                    or only those of topics that are not wanted any more (cooperative)
        join        JoinGroup, until the whole group has joined
        sync        SyncGroup; the leader shares out the partitions first
        complete    the user takes the new partitions over, in the caller's next poll; a cooperative member first
                    gives up what goes to others
        wait until a rejoin is needed: at once if something was given up, for others wait for it

A poll that is cancelled ends its own waiting and nothing here. What a failure means is in `trouble.py`, what each
error code means in `join.py`, `sync.py` and `heartbeat.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kclient.change_signal import wait_any
from kclient.config import Config
from kclient.errors import KclientError
from kclient.group.assignment_check import by_topic, impossible_assignment, why_impossible
from kclient.group.assignors import COOPERATIVE, Assignment, Assignor, common_protocol
from kclient.group.assignors.base import assignor_failed
from kclient.group.coordinator import Coordinator
from kclient.group.generation import Generation, Standing
from kclient.group.heartbeat import Heartbeats
from kclient.group.join import Join, Joined
from kclient.group.leader import Leader
from kclient.group.subscription_protocol import decode_assignment
from kclient.group.sync import Sync
from kclient.group.trouble import Trouble, code_of
from kclient.group.user import User
from kclient.group.wanted import Wanted
from kclient.log import ThrottledLogger, get_logger
from kclient.metrics.coordinator import CoordinatorMetrics
from kclient.network.cluster import Cluster
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
from kclient.runtime import Runtime
from kclient.text import format_names, format_partitions
from kclient.types import GroupMetadata

logger = get_logger("kclient.group")


class GroupFlow:
    """The conversation of one member with its coordinator."""

    def __init__(
        self,
        coordinator: Coordinator,
        cluster: Cluster,
        config: Config,
        runtime: Runtime,
        user: User,
        assignors: Sequence[Assignor],
        standing: Standing,
        wanted: Wanted,
        trouble: Trouble,
        heartbeats: Heartbeats,
        metrics: CoordinatorMetrics,
    ) -> None:
        self._coordinator = coordinator
        self._cluster = cluster
        self._user = user
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._cooperative = common_protocol(assignors) == COOPERATIVE
        self._standing = standing
        self._wanted = wanted
        self._trouble = trouble
        self._metrics = metrics
        self._instance_id = config.group_instance_id
        self._request_timeout = config.request_timeout_ms / 1000
        self._now = runtime.now
        self._throttled = ThrottledLogger(logger)
        self._join = Join(coordinator, standing, heartbeats, config, assignors, user.owned)
        self._sync = Sync(coordinator, standing, config)
        self._leader = Leader(cluster, config, runtime, assignors)

    async def run(self) -> None:
        """The conversation, until cancelled."""
        while True:
            try:
                await self._subscribed()
                if self._standing.generation.lost and self._user.owned():
                    await (
                        self._prepare()
                    )  # others may own it already: do not wait until a coordinator is found
                await self._coordinator.ensure()
                await self._prepare()
                joined = await self._join_group()
                assignment = await self._sync_group(joined)
                await self._complete(joined.generation, assignment)
                await self._rejoin_needed()
            except KclientError as exc:
                if code_of(exc) != codes.MEMBER_ID_REQUIRED:
                    self._metrics.rebalance_failed()
                    self._standing.request_rejoin(f"rebalance failed due to {exc.text}")
                await self._trouble.recover(exc)

    async def _subscribed(self) -> None:
        """Wait for a subscription. A fenced instance waits until it has left."""
        while self._wanted.topics is None or self._trouble.fenced is not None:
            await self._standing.changed.wait(self._standing.changed.count)

    async def _prepare(self) -> None:
        """Once for every rebalance, again if the membership ended meanwhile."""
        while self._standing.prepare_due:
            self._standing.prepare_due = False
            self._log("preparing to join")
            await self._user.prepare(self._standing.generation.lost, cooperative=self._cooperative)

    async def _join_group(self) -> Joined:
        if self._wanted.topics is None:
            raise broker_error(codes.UNKNOWN_MEMBER_ID, "Joining", message="unsubscribed meanwhile")
        self._wanted.watched = None
        self._wanted.joined_with = self._wanted.topics
        self._metrics.rebalance_began()
        sent = self._metrics.now()
        joined = await self._join.join(self._wanted.joined_with)
        self._metrics.joined(sent)
        return joined

    async def _sync_group(self, joined: Joined) -> Assignment:
        """The leader shares out; everybody waits for their part."""
        plan: dict[str, bytes] = {}
        if joined.is_leader:
            plan, self._wanted.watched = await self._leader.plan(joined, self._wanted.joined_with)
        self._wanted.keep_fresh(self._cluster)
        sent = self._metrics.now()
        blob = await self._sync.sync(joined.generation, plan)
        self._metrics.synced(sent)
        return decode_assignment(blob)

    async def _complete(self, generation: Generation, assignment: Assignment) -> None:
        """Hand the assignment over, unless it is not for what we want now."""
        await self._require_possible(assignment)
        if not self._wanted.accept(assignment):
            self._throttled.warning(
                "mismatch",
                self._now(),
                "group %s: the assignment %s does not match the subscription %s: joining again",
                self._coordinator.group_id,
                format_partitions(assignment.partitions),
                format_names(self._wanted.topics or ()),
            )
            self._standing.request_rejoin("received assignment does not match the current subscription")
            await self._trouble.pause()
            return
        self._trouble.over()
        self._log("taking over the assignment")
        protocol = generation.protocol or ""
        gave_up = await self._user.complete(
            protocol,
            assignment.partitions,
            generation,
            lambda: self._tell_assignor(protocol, assignment, generation),
        )
        if gave_up:
            self._standing.request_rejoin("need to revoke partitions and re-join")

    async def _require_possible(self, assignment: Assignment) -> None:
        """Raise for an assignment that cannot be, also in the light of newer metadata."""
        assigned, metadata = by_topic(assignment.partitions), self._cluster.metadata
        if why_impossible(assigned, metadata) is None:
            return
        await self._cluster.update_now(self._request_timeout)
        if (why := why_impossible(assigned, metadata)) is not None:
            raise impossible_assignment(self._coordinator.group_id, why)

    async def _rejoin_needed(self) -> None:
        """Wait until the flag is up, the subscription is another, or the leader's topics have changed."""
        standing, metadata = self._standing, self._cluster.metadata
        while True:
            seen, seen_metadata = standing.changed.count, metadata.changed.count
            if standing.rejoin_reason is None and (reason := self._wanted.why_rejoin(metadata)) is not None:
                standing.request_rejoin(reason)
            if standing.rejoin_reason is not None:
                logger.info(
                    "group %s: a join is needed: %s", self._coordinator.group_id, standing.rejoin_reason
                )
                return
            await wait_any((standing.changed, seen), (metadata.changed, seen_metadata))

    def _log(self, doing: str) -> None:
        group_id, now = self._coordinator.group_id, self._standing.generation
        logger.debug(
            "group %s: %s, generation %d, member %r", group_id, doing, now.generation_id, now.member_id
        )

    def _tell_assignor(self, protocol: str, assignment: Assignment, generation: Generation) -> None:
        try:
            metadata = GroupMetadata(
                self._coordinator.group_id,
                generation.generation_id,
                generation.member_id,
                self._instance_id,
            )
            self._assignors[protocol].on_assignment(assignment, metadata)
        except (Exception, asyncio.CancelledError, SystemExit) as exc:  # noqa: BLE001 – the next poll raises it
            in_place = "The assignment is in place; what the assignor wanted to remember is not."
            failure = assignor_failed(protocol, exc, "in on_assignment", in_place)
            failure.__cause__ = exc
            self._trouble.keep(failure)

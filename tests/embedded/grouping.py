"""Members of a classic group that do nothing by themselves, on a cluster whose time stands still unless it is moved."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from kclient.embedded import EmbeddedCluster
from kclient.embedded.groups import inspection
from kclient.generated.find_coordinator_request import FindCoordinatorRequest
from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.generated.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kclient.generated.leave_group_request import LeaveGroupRequest, MemberIdentity
from kclient.generated.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kclient.generated.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from kclient.generated.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kclient.group.assignors.base import Assignment, Subscription
from kclient.group.subscription_codec import encode_assignment, encode_subscription
from kclient.protocol.errors import MEMBER_ID_REQUIRED, NONE
from kclient.protocol.message import Message
from kclient.types import TopicPartition
from tests.embedded.raw_client import RawClient
from tests.waiting import until

GROUP = "billing"
LOOKS = 5_000
INITIAL_DELAY = 3.0  # of the groups here, in the cluster's seconds

Scenario = Callable[["World"], Awaitable[None]]


def blob(*topics: str, user_data: bytes | None = None) -> bytes:
    """What a member says of its subscription."""
    return encode_subscription(Subscription(topics=topics, user_data=user_data))


def plan(*partitions: int, topic: str = "orders") -> bytes:
    """What the leader gives a member."""
    return encode_assignment(Assignment(tuple(TopicPartition(topic, number) for number in partitions)))


PROTOCOLS = (("range", blob("orders")),)


def play(scenario: Scenario, release: str = "4.3", brokers: int = 3, **config: Any) -> None:
    """Run a scenario on a cluster of its own; keywords are settings with underscores."""

    async def main() -> None:
        usual = {
            "group.initial.rebalance.delay.ms": int(INITIAL_DELAY * 1000),
            "connections.max.idle.ms": -1,  # days pass here, and a raw client does not reconnect
        }
        names = usual | {name.replace("_", "."): value for name, value in config.items()}
        async with (
            EmbeddedCluster(brokers, release=release, config=names, topics={"orders": 6}) as cluster,
            RawClient(cluster) as raw_client,
        ):
            await scenario(World(cluster, raw_client))

    asyncio.run(main())


class World:
    """One cluster and a raw client."""

    def __init__(self, cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        self.cluster = cluster
        self.raw_client = raw_client
        self.state = cluster.state
        self._lanes = 0

    def member(self, **said: Any) -> Member:
        """A member with a connection of its own."""
        self._lanes += 1
        return Member(self, f"member {self._lanes}", **said)

    @property
    def group(self) -> Any:
        """The group in its coordinator's memory."""
        return inspection.find(self.state, GROUP)

    def pass_time(self, seconds: float) -> None:
        """Let the cluster's time go on."""
        self.cluster.clock.advance(seconds)

    async def ask(self, request: Message, version: int, lane: str = "") -> Any:
        """Ask the group's coordinator."""
        return await self.raw_client.ask(request, version, self.cluster.coordinator_of(GROUP), lane)

    async def find(self, version: int = 1, node: int | None = None, **what: Any) -> Any:
        """Ask for the coordinator."""
        return await self.raw_client.ask(FindCoordinatorRequest(**{"key": GROUP, **what}), version, node)

    async def commit(self, offset: int, partition: int = 0, version: int = 8, **said: Any) -> int:
        """Commit one offset; the code for it."""
        row = OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=-1,
            committed_metadata=said.pop("metadata", ""),
            commit_timestamp=said.pop("commit_timestamp", -1),
        )
        name = said.pop("topic", "orders")
        topic = OffsetCommitRequestTopic(
            name=name if version < 10 else "",
            topic_id=self.state.topics[name].topic_id if version >= 10 else bytes(16),
            partitions=[row],
        )
        lane = said.pop("lane", "commits")
        request = OffsetCommitRequest(**{"group_id": GROUP, "topics": [topic], **said})
        response = await self.ask(request, version, lane)
        return int(response.topics[0].partitions[0].error_code)

    async def fetched(self, partition: int = 0, require_stable: bool = False, topic: str = "orders") -> Any:
        """What OffsetFetch says of one partition: offset and code."""
        topics = [OffsetFetchRequestTopic(name=topic, partition_indexes=[partition])]
        request = OffsetFetchRequest(group_id=GROUP, topics=topics, require_stable=require_stable)
        response = await self.ask(request, 7)
        if response.error_code:
            return None, response.error_code
        row = response.topics[0].partitions[0]
        return row.committed_offset, row.error_code


class Member:
    """`member_id` and `generation` are those of the last good JoinGroup."""

    def __init__(
        self,
        world: World,
        lane: str,
        *,
        instance_id: str | None = None,
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        protocols: tuple[tuple[str, bytes], ...] = PROTOCOLS,
        join_version: int | None = None,
    ) -> None:
        self.world, self.lane = world, lane
        self.instance_id = instance_id
        self.session_ms, self.rebalance_ms = session_ms, rebalance_ms
        self.protocols = protocols
        newest = 9 if world.state.release.numbers >= (3, 2) else 7
        self.join_version = newest if join_version is None else join_version
        self.member_id, self.generation = "", -1

    async def ask_to_join(self) -> Any:
        """One JoinGroup and its response."""
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in self.protocols
            ],
        )
        response = await self.world.ask(request, self.join_version, self.lane)
        if response.error_code in (NONE, MEMBER_ID_REQUIRED):
            self.member_id = response.member_id
        if response.error_code == NONE:
            self.generation = response.generation_id
        return response

    async def join(self) -> Any:
        """The same with the second step where one is asked for."""
        response = await self.ask_to_join()
        return await self.ask_to_join() if response.error_code == MEMBER_ID_REQUIRED else response

    async def parked(self) -> asyncio.Task[Any]:
        """Join, up to the point at which the coordinator holds the response back."""
        before = len(self._waiting())
        task = asyncio.create_task(self.join())
        await until(lambda: len(self._waiting()) > before or task.done())
        assert not task.done(), task.result()
        return task

    def _waiting(self) -> list[Any]:
        return [] if self.world.group is None else self.world.group.waiting

    async def ask_to_sync(self, plans: dict[str, bytes]) -> Any:
        """SyncGroup with a plan by member id."""
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=part)
                for member_id, part in plans.items()
            ],
        )
        return await self.world.ask(request, 5, self.lane)

    async def heartbeat(self, version: int = 4) -> int:
        """The code."""
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        return int((await self.world.ask(request, version, self.lane)).error_code)

    async def leave(self) -> Any:
        """The response."""
        who = MemberIdentity(member_id=self.member_id)
        return await self.world.ask(LeaveGroupRequest(group_id=GROUP, members=[who]), 4, self.lane)

    async def commit(self, offset: int, **said: Any) -> int:
        """As a member of the generation."""
        return await self.world.commit(
            offset,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            **said,
        )


async def known(world: World) -> None:
    """There is a coordinator that answers."""
    for _ in range(LOOKS):
        if (await world.find()).error_code == NONE:
            return
        await asyncio.sleep(0.001)
    raise TimeoutError("no coordinator was found")


async def gathered(world: World, *members: Member) -> list[Any]:
    """A new group of these, the first one leads: their responses to JoinGroup."""
    await known(world)
    tasks = [await member.parked() for member in members]
    while not all(task.done() for task in tasks):
        world.pass_time(INITIAL_DELAY)
        await asyncio.sleep(0.001)
    return [task.result() for task in tasks]


async def stable(world: World, *members: Member) -> None:
    """A new group of these, partition 0 for the first and leading one, and so on."""
    await gathered(world, *members)
    assert members[0].member_id == world.group.leader
    parts = {member.member_id: plan(number) for number, member in enumerate(members)}
    followers = [asyncio.create_task(member.ask_to_sync({})) for member in members[1:]]
    responses = await asyncio.gather(members[0].ask_to_sync(parts), *followers)
    assert [response.error_code for response in responses] == [NONE] * len(members)

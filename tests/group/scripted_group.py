"""What the tests of this folder share: a scripted coordinator, a user that does its part at once, a running member."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs

from kclient.config import Config
from kclient.generated.find_coordinator_response import Coordinator as Found
from kclient.generated.find_coordinator_response import FindCoordinatorResponse
from kclient.generated.heartbeat_response import HeartbeatResponse
from kclient.generated.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from kclient.generated.sync_group_response import SyncGroupResponse
from kclient.group.assignors import Assignment, Subscription
from kclient.group.classic.member import ClassicMembership
from kclient.group.classic.state import ClassicMemberState
from kclient.group.coordinator import Coordinator
from kclient.group.membership import Generation
from kclient.group.subscription_codec import encode_assignment, encode_subscription
from kclient.network.cluster import Cluster
from kclient.runtime import Runtime
from kclient.types import TopicPartition
from tests.scripted_broker import On, ScriptedBroker

GROUP = "delays"
FAST = {
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 40,
    "reconnect_backoff_ms": 5,
    "reconnect_backoff_max_ms": 40,
}


def config(peer: ScriptedBroker, **keys: Any) -> Config:
    return Config(bootstrap_servers=(peer.address,), group_id=GROUP, **{**FAST, **keys})


def found(peer: ScriptedBroker) -> FindCoordinatorResponse:
    """This peer coordinates the group."""
    entry = Found(key=GROUP, node_id=peer.node_id, host=peer.host, port=peer.port)
    return FindCoordinatorResponse(coordinators=[entry])


def refused(code: int) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=[Found(key=GROUP, node_id=-1, host="", port=-1, error_code=code)]
    )


def joined(
    generation: int = 1, member: str = "m-1", leader: str = "m-0", members: Any = (), **fields: Any
) -> JoinGroupResponse:
    """A JoinGroup that went well; we are a follower unless `leader` is `member`."""
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type="consumer",
        protocol_name=fields.pop("protocol_name", "range"),
        leader=leader,
        member_id=member,
        members=list(members),
        **fields,
    )


def wants(member: str, *topics: str, instance: str | None = None) -> JoinGroupResponseMember:
    blob = encode_subscription(Subscription(topics))
    return JoinGroupResponseMember(member_id=member, group_instance_id=instance, metadata=blob)


def synced(*partitions: tuple[str, int]) -> SyncGroupResponse:
    """A SyncGroup that assigns these partitions."""
    blob = encode_assignment(Assignment(tuple(TopicPartition(*each) for each in partitions)))
    return SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=blob)


def join_then_sync(*partitions: tuple[str, int], generation: int = 1, member: str = "m-1") -> list[On]:
    return [
        On("JoinGroupRequest", joined(generation, member)),
        On("SyncGroupRequest", synced(*partitions)),
    ]


@attrs.define
class RecordingUser:
    """Does its part at once and notes it, or waits for `gate` first."""

    calls: list[tuple[Any, ...]] = attrs.field(factory=list)
    gate: asyncio.Event | None = None
    has: tuple[TopicPartition, ...] = ()
    slow: list[float] = attrs.field(factory=list)

    def owned(self) -> tuple[TopicPartition, ...]:
        return self.has

    def poll_slow(self, since_poll: float) -> None:
        self.slow.append(since_poll)

    async def on_join_prepare(self, lost: bool, *, cooperative: bool = False) -> None:
        if self.gate is not None:
            await self.gate.wait()
        if lost or not cooperative:
            self.has = ()
        self.calls.append(("prepare", lost))

    async def on_join_complete(
        self,
        protocol: str,
        assignment: tuple[TopicPartition, ...],
        generation: Generation,
        notify_assignor: Callable[[], None],
    ) -> bool:
        before, self.has = self.has, assignment
        notify_assignor()
        self.calls.append(("complete", protocol, assignment, generation))
        return not set(before) <= set(assignment)

    async def reconcile(self, assignment: tuple[TopicPartition, ...], still: Callable[[], bool]) -> bool:
        self.has = assignment
        return still()

    @property
    def prepared(self) -> list[bool]:
        return [call[1] for call in self.calls if call[0] == "prepare"]

    @property
    def assignments(self) -> list[tuple[TopicPartition, ...]]:
        return [call[2] for call in self.calls if call[0] == "complete"]


@attrs.define
class Running:
    """A member whose flow runs."""

    peer: ScriptedBroker
    cluster: Cluster
    coordinator: Coordinator
    membership: ClassicMembership
    user: RecordingUser
    flow: asyncio.Task[None]

    async def until(self, condition: Callable[[], object], seconds: float = 5.0) -> None:
        """Wait for a condition over what the member and the peer have done."""
        async with asyncio.timeout(seconds):
            while not condition():
                if self.flow.done():
                    self.flow.result()
                await asyncio.sleep(0.002)

    async def stable(self, generation: int = 1) -> None:
        """Wait until the user has taken over the assignment of a generation."""
        await self.until(
            lambda: (
                self.membership.state is ClassicMemberState.STABLE
                and any(c[0] == "complete" and c[3].generation_id == generation for c in self.user.calls)
            )
        )

    async def polled_error(self) -> Exception:
        """The error that a poll raises, as soon as there is one."""
        error = self.membership.take_error()
        async with asyncio.timeout(30.0):
            while error is None:
                await asyncio.sleep(0.002)
                error = self.membership.take_error()
        return error


def scripted(*script: On, topics: dict[str, int] | None = None, **more: Any) -> ScriptedBroker:
    """A peer that is the coordinator, answers heartbeats, and follows the script for the rest."""
    peer = ScriptedBroker(*script, topics=topics or {"flights": 4}, **more)
    peer.default_responses["FindCoordinatorRequest"] = lambda request: found(peer)
    peer.default_responses["HeartbeatRequest"] = HeartbeatResponse()
    return peer


@asynccontextmanager
async def coordinating(
    peer: ScriptedBroker, **keys: Any
) -> AsyncIterator[tuple[Cluster, Coordinator, Config, Runtime]]:
    """A started cluster and a coordinator that is not looked up yet."""
    runtime = Runtime()
    settings = config(peer, **keys)
    cluster = Cluster(settings, runtime)
    await cluster.start()
    coordinator = Coordinator(cluster, GROUP, settings, runtime)
    try:
        yield cluster, coordinator, settings, runtime
    finally:
        await coordinator.close()
        await cluster.close(1.0)


@asynccontextmanager
async def member(
    peer: ScriptedBroker,
    *,
    topics: tuple[str, ...] = ("flights",),
    gate: asyncio.Event | None = None,
    **keys: Any,
) -> AsyncIterator[Running]:
    """A member that has subscribed and whose flow runs."""
    async with coordinating(peer, **keys) as (cluster, coordinator, settings, runtime):
        user = RecordingUser(gate=gate)
        membership = ClassicMembership(coordinator, cluster, settings, runtime, user)
        membership.set_subscription(topics)
        flow = asyncio.create_task(membership.run())
        try:
            yield Running(peer, cluster, coordinator, membership, user, flow)
        finally:
            flow.cancel()
            await asyncio.wait({flow})
        if not flow.cancelled():
            flow.result()


F = [TopicPartition("flights", number) for number in range(4)]


def play(peer: ScriptedBroker, scene: Callable[[Running], Awaitable[None]], **keys: Any) -> ScriptedBroker:
    async def run() -> None:
        async with peer, asyncio.timeout(20), member(peer, **keys) as running:
            await scene(running)

    asyncio.run(run())
    return peer


def names(peer: ScriptedBroker) -> list[str]:
    """What was asked of the coordinator, in order, without heartbeats."""
    left_out = ("MetadataRequest", "HeartbeatRequest")
    return [seen.name.removesuffix("Request") for seen in peer.requests if seen.name not in left_out]

"""Drawn lives of a consumer group: clients come, go, crash, are slow, lose responses, change what they read.

Whatever happens no partition is with two of them. When it ends, a few rounds of heartbeats later every partition is
with one.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.embedded import EmbeddedCluster, controller
from kclient.embedded.partition import OFFSETS_TOPIC
from tests.embedded.consumer_member import Client, described
from tests.embedded.raw_client import RawClient

GROUP = "readers"
TOPICS = {"a": 3, "b": 4, "c": 1}
ROUNDS = 6  # to settle, once nothing happens any more
SESSION_SECONDS = 45
INTERVAL_SECONDS = 5

names = st.sampled_from(["m1", "m2", "m3"])
topics = st.sampled_from([["a", "b"], ["a", "b", "c"], ["b"], []])
deeds = st.one_of(
    st.tuples(st.just("come"), names, topics),
    st.tuples(st.sampled_from(["step", "slow", "lost"]), names),
    st.tuples(st.sampled_from(["step", "slow", "leave", "crash"]), names),
    st.tuples(st.just("subscribe"), names, topics),
    st.tuples(st.sampled_from(["wait", "grow", "restart"])),
)


class Life:
    """The group's clients, and what has been done so far."""

    def __init__(self, cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        self.cluster, self.raw_client = cluster, raw_client
        self.clients: dict[str, Client] = {}
        self.born = 0

    async def do(self, deed: tuple[Any, ...]) -> None:
        """Do one step; skip it if there is no client for it."""
        what, *rest = deed
        if what in ("wait", "grow", "restart"):
            await getattr(self, what)()
        elif what == "come" and rest[0] not in self.clients:
            self.born += 1
            self.clients[rest[0]] = Client(self.raw_client, GROUP, f"{rest[0]}-{self.born}", rest[1])
            await self.clients[rest[0]].step()
        elif rest and rest[0] in self.clients:
            await self.act(what, self.clients[rest[0]], *rest)
        self.check()

    async def act(self, what: str, client: Client, name: str, *rest: Any) -> None:
        if what in ("step", "slow", "lost"):
            await client.step(slow=what == "slow", lost=what == "lost")
        elif what == "subscribe":
            await client.subscribe(rest[0])
        elif what in ("leave", "crash"):
            del self.clients[name]
            if what == "leave" and client.epoch > 0:
                await client.beat(-1)

    async def wait(self) -> None:
        """Longer than a session, in which the living are heard of."""
        for _ in range(SESSION_SECONDS // INTERVAL_SECONDS + 1):
            self.cluster.state.clock.advance(INTERVAL_SECONDS)
            for client in self.clients.values():
                await client.step()

    async def grow(self) -> None:
        """A topic gets a partition more."""
        topic = self.cluster.state.topics["c"]
        controller.add_partitions(self.cluster.state, topic, len(topic.partitions) + 1, 1)

    async def restart(self) -> None:
        """The coordinator reads the group back."""
        self.cluster.kill(1)
        await self.cluster.restart(1)

    def check(self) -> None:
        """No partition is with two."""
        seen: dict[tuple[bytes, int], str] = {}
        for client in self.clients.values():
            for partition in sorted(client.owned):
                other = seen.setdefault(partition, client.member_id)
                assert other == client.member_id, (partition, other, client.member_id)

    async def settle(self) -> None:
        """Quiet: after a session's time and a few rounds every partition has an owner, and the group is stable."""
        await self.wait()
        for _ in range(ROUNDS):
            for client in self.clients.values():
                await client.step()
                self.check()
        wanted = {name for client in self.clients.values() for name in client.topics}
        everything = {
            (topic.topic_id, number)
            for name, topic in self.cluster.state.topics.items()
            if name in wanted
            for number in range(len(topic.partitions))
        }
        owned = [partition for client in self.clients.values() for partition in client.owned]
        assert sorted(owned) == sorted(everything)
        if self.clients:
            group = await described(self.raw_client, GROUP)
            assert group.group_state == "Stable"
            assert {member.member_epoch for member in group.members} == {group.group_epoch}


async def live(deeds: list[tuple[Any, ...]]) -> None:
    async with EmbeddedCluster(topics=TOPICS) as cluster, RawClient(cluster) as raw_client:
        controller.create_internal_topic(cluster.state, OFFSETS_TOPIC)
        life = Life(cluster, raw_client)
        await life.do(("come", "m1", ["a", "b"]))
        for deed in deeds:
            await life.do(deed)
        await life.settle()


@pytest.mark.spec("B.17.6", "A-14", "I-10")
@settings(max_examples=80, deadline=None)
@given(st.lists(deeds, min_size=12, max_size=50))
def test_no_partition_is_ever_with_two_and_in_the_end_each_is_with_one(deeds: list[tuple[Any, ...]]) -> None:
    asyncio.run(live(deeds))

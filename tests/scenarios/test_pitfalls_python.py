"""Mistakes that a client in Python is prone to, each played against this one."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import UnsupportedFormatError
from kclient.group.assignors import Member
from kclient.group.assignors.base import Assignor, Subscription
from kclient.group.assignors.range import RangeAssignor
from kclient.group.assignors.roundrobin import RoundRobinAssignor
from tests.scenarios.simulated import Place, simulate
from tests.scenarios.support import T0, T1, asked, consumer_of, play, read

MODULES = {"snappy": "cramjam", "lz4": "lz4.frame", "zstd": "backports"}


@pytest.mark.spec("D-54", "B.11.5")
@pytest.mark.parametrize("codec", MODULES)
def test_a_codec_that_is_missing_is_reported_at_every_poll_until_a_seek(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: an obscure error at the wrong time, or UnboundLocalError."""
    module = MODULES[codec]
    if codec == "zstd" and sys.version_info >= (3, 14):
        module = "compression"

    async def scenario() -> None:
        async with EmbeddedCluster(1, topics={"t": 2}) as cluster, consumer_of(cluster) as consumer:
            cluster.produce("t", ["plain"], partition=0)
            cluster.produce("t", ["packed", "too"], partition=0, codec=codec)
            cluster.produce("t", ["behind"], partition=0)
            monkeypatch.setitem(sys.modules, module, None)
            await consumer.assign([T0])
            assert [record.offset for record in await read(consumer, 1)] == [0]
            for _ in range(3):
                with pytest.raises(UnsupportedFormatError, match=f"t-0.*{codec}"):
                    await read(consumer, 1)
                assert await consumer.position(T0) == 1
            consumer.seek(T0, 3)
            assert [record.value for record in await read(consumer, 1)] == [b"behind"]

    play(scenario)


@pytest.mark.spec("D-54")
def test_no_codec_is_needed_to_import_kclient() -> None:
    block = f"import sys; sys.modules.update(dict.fromkeys({[*MODULES.values()]!r}))"
    program = f"{block}; from kclient import Consumer"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.spec("D-73", "B.16")
@pytest.mark.parametrize("assignor", [RangeAssignor(), RoundRobinAssignor()], ids=["range", "roundrobin"])
def test_members_are_sorted_as_java_sorts_text(assignor: Assignor) -> None:
    """By UTF-16 code units: an astral character comes before U+E000, though its code point is higher."""
    members = [Member(name, Subscription(("t",))) for name in ("\ue000", "😀", "\uffff")]
    shared = assignor.assign({"t": [frozenset()] * 3}, members)
    first = {name: [one.partition for one in shared[name].partitions] for name in shared}
    assert first == {"😀": [0], "\ue000": [1], "\uffff": [2]}


@pytest.mark.spec("D-74", "I-18")
@pytest.mark.parametrize("skew", [3_600.0, -3_600.0])
def test_a_wall_clock_that_jumps_ends_no_wait_and_moves_no_deadline(skew: float) -> None:
    """While a request, a session, a poll interval and a back-off run: each ends when its own seconds are over."""

    async def scenario(place: Place) -> list[tuple[float, str]]:
        place.cluster.produce("t", ["0"])
        settings = {"group_id": "g", "enable_auto_commit": True, "request_timeout_ms": 5_000}
        consumer = place.consumer("t", **settings, session_timeout_ms=6_000, max_poll_interval_ms=8_000)
        await place.read(consumer, 1)
        place.cluster.drop("Fetch", times=1)
        place.world.clock("member").skew = jump[0]
        await place.poll_until(consumer, lambda: place.now > 40)
        return [(one.at, one.api) for one in place.cluster.requests]

    jump = [0.0]
    steady = simulate(scenario, topics={"t": 1}).result
    jump[0] = skew
    assert simulate(scenario, topics={"t": 1}).result == steady
    assert {"Heartbeat", "OffsetCommit", "Fetch"} <= {api for _, api in steady}


@pytest.mark.spec("D-81")
def test_a_pattern_must_match_the_whole_name() -> None:
    """Seen: re.match, which takes a prefix for a match."""

    async def scenario() -> None:
        topics = {"foo": 1, "foobar": 1, "barfoo": 1}
        async with EmbeddedCluster(1, topics=topics) as cluster:
            for topic in topics:
                cluster.produce(topic, [topic])
            for pattern, expected in (("foo", {"foo"}), ("foo.*", {"foo", "foobar"}), ("foo|bar", {"foo"})):
                async with consumer_of(cluster, group_id=f"g {pattern}") as consumer:
                    await consumer.subscribe(pattern=pattern)
                    found = {record.topic for record in await read(consumer, len(expected))}
                    assert found == expected
                    assert {tp.topic for tp in consumer.assignment()} == expected

    play(scenario)


@pytest.mark.spec("D-83")
def test_brokers_are_reached_at_ipv6_addresses() -> None:
    """The list brackets an address, metadata gives it raw."""

    async def scenario() -> None:
        async with EmbeddedCluster(1, topics={"t": 1}, addresses=[("::1", 0)]) as cluster:
            cluster.produce("t", ["0"])
            (listener,) = cluster.state.brokers[1].listeners
            servers = f"[::1]:{listener.port}"
            async with consumer_of(cluster, "t", group_id="g", bootstrap_servers=servers) as consumer:
                assert len(await read(consumer, 1)) == 1
            (broker,) = asked(cluster, "Metadata")[-1].response.brokers
            assert broker.host == "::1"

    play(scenario)


@pytest.mark.spec("D-84", "D-24", "B.5.1")
def test_no_topics_and_all_topics_differ_on_the_wire() -> None:
    """In versions with compact arrays, with plain ones, and in version 0, where an empty array means all."""

    async def scenario() -> None:
        for release in ("4.3", "2.3", "0.10.1", "0.10.0"):
            async with EmbeddedCluster(1, release=release, topics={"t": 2, "u": 1}) as cluster:
                async with consumer_of(cluster) as consumer:
                    assert {"t", "u"} <= set(await consumer.list_topics())
                requested = [one.request.topics for one in asked(cluster, "Metadata")]
                assert requested[0] == []
                assert None in requested
                empty = next(one for one in asked(cluster, "Metadata") if one.request.topics == [])
                assert empty.response.topics == []

    play(scenario)


@pytest.mark.spec("D-22", "B.10.7")
def test_what_was_buffered_when_a_partition_was_paused_comes_next_without_a_fetch() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(1, topics={"t": 2}) as cluster:
            cluster.produce("t", [str(number) for number in range(250)], partition=0)
            settings: dict[str, Any] = {"group_id": "g", "max_poll_records": 50}
            async with consumer_of(cluster, "t", **settings) as consumer:
                found = await read(consumer, 50)
                consumer.pause([T0])
                await consumer.commit()
                assert cluster.committed("g") == {T0: 50, T1: 0}
                for _ in range(3):
                    assert not await consumer.poll(0.05)
                fetched = [
                    part.partition
                    for one in asked(cluster, "Fetch")
                    for topic in one.request.topics
                    for part in topic.partitions
                ]
                consumer.resume([T0])
                found += await read(consumer, 200)
                assert [record.offset for record in found] == list(range(250))
                assert fetched.count(0) <= 2

    play(scenario)

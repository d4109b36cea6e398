"""Scenario A-18: arithmetic that Java and we must do alike, and the version of every request to every release."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest

from kclient import AsyncConsumer, OffsetAndMetadata, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.embedded.partition import OFFSETS_TOPIC
from kclient.embedded.releases import KNOWN
from kclient.errors import VersionError
from kclient.generated.fetch_request import FetchRequest
from kclient.generated.join_group_request import JoinGroupRequest
from kclient.protocol import decode, encode
from kclient.protocol.primitives import ZERO_UUID
from tests.scenarios.support import T0, asked, consumer_of, play, read

# Group → its partition of 50 and of 3, as the protocol's own table has them.
GROUPS = {
    "a": (47, 1),
    "test": (48, 1),
    "my-group": (12, 0),
    "test-group": (12, 2),
    "kclient": (32, 0),
    "console-consumer-12345": (6, 0),
    "polygenelubricants": (0, 0),  # its hash is −2³¹, whose absolute value is taken to be 0
    "群组": (8, 1),
    "group-😀": (7, 0),  # two UTF-16 code units
    "KafkaConsumerGroup": (21, 1),
}

# API → version:the release whose brokers were the first to list it. What a consumer asks.
HISTORY = {
    "Fetch": "2:0.10.0 3:0.10.1 5:0.11 6:1.0 7:1.1 8:2.0 9,10:2.1 11:2.3 12:2.7 13:3.1 14,15:3.5 16:3.7 17:3.9 18:4.1",
    "ListOffsets": "0:0.8 1:0.10.1 2:0.11 3:2.0 4:2.1 5:2.2 6:2.8 7:3.0 8:3.5 9:3.9 10:4.0 11:4.2",
    "Metadata": "0:0.8 1:0.10.0 2:0.10.1 3,4:0.11 5:1.0 6:2.0 7:2.1 8:2.3 9:2.4 10,11:2.8 12:3.1 13:4.0",
    "OffsetCommit": "2:0.9 3:0.11 4:2.0 5,6:2.1 7:2.3 8:2.4 9:3.7 10:4.2",
    "OffsetFetch": "1:0.8.2 2:0.10.2 3:0.11 4:2.0 5:2.1 6:2.4 7:2.5 8:3.0 9:3.7 10:4.2",
    "FindCoordinator": "0:0.8.2 1:0.11 2:2.0 3:2.4 4:3.0 5:3.8 6:3.9",
    "JoinGroup": "0:0.9 1:0.10.1 2:0.11 3:2.0 4:2.2 5:2.3 6:2.4 7:2.5 8,9:3.2",
    "Heartbeat": "0:0.9 1:0.11 2:2.0 3:2.3 4:2.4",
    "LeaveGroup": "0:0.9 1:0.11 2:2.0 3,4:2.4 5:3.2",
    "SyncGroup": "0:0.9 1:0.11 2:2.0 3:2.3 4:2.4 5:2.5",
    "ApiVersions": "0:0.10.0 3:2.4 4:3.9 5:4.4",  # 1 and 2 stay hidden: older brokers list nothing when they refuse
    "OffsetForLeaderEpoch": "3:2.3 4:2.8",  # not asked of older brokers
}


def numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def newest(api: str, release: str) -> int | None:
    """The newest version of an API that brokers of a release list."""
    rows = [re.split("[:,]", word) for word in HISTORY[api].split()]
    listed = [(numbers(row[-1]), int(version)) for row in rows for version in row[:-1]]
    return max((version for since, version in listed if since <= numbers(release)), default=None)


def before_2_4(release: str) -> bool:
    return numbers(release) < (2, 4)


# --- arithmetic


@pytest.mark.spec("A-18", "S1-10", "S4-12", "B.20")
@pytest.mark.parametrize(("count", "column"), [(50, 0), (3, 1)])
def test_a18_a_group_is_asked_for_where_its_partition_is_led(count: int, column: int) -> None:
    async def scenario() -> None:
        config = {"offsets.topic.num.partitions": count}
        async with EmbeddedCluster(3, topics={"t": 1}, config=config) as cluster:
            for group, partitions in GROUPS.items():
                async with consumer_of(cluster, group_id=group) as consumer:
                    await consumer.commit({T0: OffsetAndMetadata(7)})
                committed = asked(cluster, "OffsetCommit")[-1]
                home = cluster.state.partition(TopicPartition(OFFSETS_TOPIC, partitions[column]))
                assert (committed.request.group_id, committed.node) == (group, home.leader)

    play(scenario)


# --- every release


async def live(cluster: EmbeddedCluster, **settings: Any) -> None:
    """Join, read, commit, let a heartbeat pass and the leader change, leave."""
    async with consumer_of(cluster, "t", group_id="g", heartbeat_interval_ms=30, **settings) as consumer:
        await read(consumer, 6)
        cluster.move_leader("t", 0)
        cluster.produce("t", ["more"], partition=0)
        assert [record.value for record in await read(consumer, 1)] == [b"more"]
        await consumer.commit()
        while not asked(cluster, "Heartbeat"):
            await consumer.poll(0.05)


@pytest.mark.spec("A-18", "B.4.5", "C.2", "D-41", "S0-50")
@pytest.mark.parametrize("release", KNOWN)
def test_a18_every_request_has_the_highest_common_version_with_every_release(release: str) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(2, release=release, topics={"t": 2}) as cluster:
            cluster.produce("t", range_of(6))
            await live(cluster)
            used = {(one.api, one.version) for one in cluster.requests}
            validates = newest("OffsetForLeaderEpoch", release) is not None and not before_2_4(release)
            apis = set(HISTORY) - (set() if validates else {"OffsetForLeaderEpoch"})
            assert used == {(api, newest(api, release)) for api in apis}
            epochs = {part.current_leader_epoch for part in fetched(cluster)}
            epochs |= {part.current_leader_epoch for part in looked_up(cluster)}
            assert (epochs == {-1}) is before_2_4(release)  # before Metadata 9 they cannot be trusted

    play(scenario)


def range_of(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def fetched(cluster: EmbeddedCluster) -> Iterator[Any]:
    for one in asked(cluster, "Fetch"):
        for topic in one.request.topics:
            yield from topic.partitions


def looked_up(cluster: EmbeddedCluster) -> Iterator[Any]:
    for one in asked(cluster, "ListOffsets"):
        for topic in one.request.topics:
            yield from topic.partitions


@pytest.mark.spec("A-18", "B.4.4")
@pytest.mark.parametrize("release", ["0.10.0", "0.11.0", "2.3", "2.4", "3.8", "3.9", "4.3", "4.4"])
def test_a18_api_versions_falls_back_on_the_same_connection(
    release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From our newest version to the one that brokers since 2.4 list, or to 0."""
    tapped = tap(monkeypatch)

    async def scenario() -> None:
        async with EmbeddedCluster(1, release=release, topics={"t": 1}) as cluster:
            consumer = consumer_of(cluster)
            await consumer.partitions_for("t")
            await consumer.close()

    play(scenario)
    listed = newest("ApiVersions", release) or 0
    second = listed if numbers(release) >= (2, 4) else 0
    assert len(tapped) >= 2  # the bootstrap server, and the broker by its id
    for requests in tapped.values():
        versions = [version for key, version in requests if key == 18]
        assert versions == ([5] if listed == 5 else [5, second])
        assert [key for key, _ in requests][: len(versions)] == [18] * len(versions)
    assert {key for requests in tapped.values() for key, _ in requests} == {18, 3}


def tap(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[tuple[int, int]]]:
    """API key and version of whatever comes to a broker, by connection, before anything looks at it."""
    from kclient.embedded.broker import EmbeddedBroker

    seen: dict[int, list[tuple[int, int]]] = {}
    serve = EmbeddedBroker.handle_request

    async def tapped(self: EmbeddedBroker, connection: Any, frame: memoryview) -> None:
        key, version = (int.from_bytes(frame[at : at + 2], "big") for at in (0, 2))
        seen.setdefault(connection.number, []).append((key, version))
        await serve(self, connection, frame)

    monkeypatch.setattr(EmbeddedBroker, "handle_request", tapped)
    return seen


@pytest.mark.spec("A-18", "B.4.4", "C.1")
def test_a18_the_header_of_a_response_to_api_versions_has_no_tags() -> None:
    """Version 0 whatever the body: these bytes are a broker's, written manually from the protocol's description."""
    body = b"\0\0" + b"\x04"  # no error; three APIs
    body += b"\0\x12\0\0\0\x04\0" + b"\0\x03\0\0\0\x0d\0" + b"\0\x01\0\x04\0\x12\0" + b"\0\0\0\0" + b"\0"

    async def scenario() -> None:
        asking: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            size = int.from_bytes(await reader.readexactly(4), "big")
            frame = await reader.readexactly(size)
            asking.append(frame)
            response = frame[4:8] + body
            writer.write(len(response).to_bytes(4, "big") + response)
            size = int.from_bytes(await reader.readexactly(4), "big")
            asking.append(await reader.readexactly(size))
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        consumer = AsyncConsumer(bootstrap_servers=f"127.0.0.1:{port}", request_timeout_ms=1000)
        with pytest.raises(Exception, match="closed"):
            await consumer.list_topics()
        await consumer.close()
        server.close()
        assert asking[0][:4] == b"\0\x12\0\x05"
        # So the response was understood: Metadata in its newest version.
        assert asking[1][:4] == b"\0\x03\0\x0d"

    play(scenario)


# --- what a version lacks


@pytest.mark.spec("A-18", "B.4.5", "S0-50")
def test_a18_an_api_without_a_common_version_fails_for_that_request_alone() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(1, release="0.10.0", topics={"t": 1}) as cluster:
            cluster.produce("t", range_of(3))
            async with consumer_of(cluster) as consumer:
                await consumer.assign([T0])
                with pytest.raises(VersionError, match="ListOffsets"):
                    await consumer.offsets_for_times({T0: 0})
                before = len(asked(cluster, "ApiVersions"))
                assert [record.value for record in await read(consumer, 3)] == range_of(3)
                assert len(asked(cluster, "ApiVersions")) == before  # no connection was lost by it

    play(scenario)


@pytest.mark.spec("A-18", "C.1", "B.13.10")
def test_a18_an_instance_id_needs_a_version_that_has_it() -> None:
    async def scenario() -> None:
        for release, possible in (("2.2", False), ("2.3", True)):
            async with EmbeddedCluster(1, release=release, topics={"t": 1}) as cluster:
                cluster.produce("t", range_of(1))
                settings = {"group_id": "g", "group_instance_id": "one"}
                async with consumer_of(cluster, "t", **settings) as consumer:
                    if possible:
                        await read(consumer, 1)
                        continue
                    with pytest.raises(VersionError, match="JoinGroup"):
                        await read(consumer, 1)
                assert not asked(cluster, "JoinGroup")

    play(scenario)


@pytest.mark.spec("A-18", "C.1")
def test_a18_a_field_that_a_version_lacks_is_left_out_or_refused() -> None:
    fetch = FetchRequest(rack_id="ignorable")
    assert decode("FetchRequest", 10, encode(fetch, 10)).rack_id == ""
    join = JoinGroupRequest(group_instance_id="not ignorable")
    with pytest.raises(Exception, match="group_instance_id"):
        encode(join, 4)
    join.group_instance_id = None  # the default: nothing is lost
    assert decode("JoinGroupRequest", 4, encode(join, 4)).group_instance_id is None


@pytest.mark.spec("A-18", "S0-22")
@pytest.mark.parametrize(
    ("release", "version", "stable"), [("2.4", 6, False), ("2.5", 7, True), ("4.3", 10, True)]
)
def test_a18_stable_offsets_are_required_where_the_version_knows_it(
    release: str, version: int, stable: bool
) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(1, release=release, topics={"t": 1}) as cluster:
            cluster.produce("t", range_of(3))
            async with consumer_of(cluster, "t", group_id="g", isolation_level="read_committed") as consumer:
                await read(consumer, 3)
            found = asked(cluster, "OffsetFetch")
            assert {(one.version, one.request.require_stable) for one in found} == {(version, stable)}

    play(scenario)


@pytest.mark.spec("A-18", "D-47", "B.10.13")
def test_a18_without_topic_ids_fetch_goes_by_name() -> None:
    def without_ids(request: Any, response: Any) -> Any:
        for topic in response.topics:
            topic.topic_id = ZERO_UUID
        return response

    async def scenario() -> None:
        async with EmbeddedCluster(1, topics={"t": 1}) as cluster:
            cluster.produce("t", range_of(3))
            cluster.on("Metadata", without_ids)
            async with consumer_of(cluster) as consumer:
                await consumer.assign([T0])
                await read(consumer, 3)
            requests = [one for one in asked(cluster, "Fetch") if one.request.session_epoch >= 0]
            assert {one.version for one in requests} == {12}
            assert requests[0].request.topics[0].topic == "t"

    play(scenario)


@pytest.mark.spec("A-18", "D-53")
def test_a18_zstd_is_read_with_a_version_that_knows_it() -> None:
    async def scenario() -> None:
        for release, version in (("2.1", 10), ("4.3", 18)):
            async with EmbeddedCluster(1, release=release, topics={"t": 1}) as cluster:
                cluster.produce("t", range_of(3), codec="zstd")
                async with consumer_of(cluster) as consumer:
                    await consumer.assign([T0])
                    assert [record.value for record in await read(consumer, 3)] == range_of(3)
                assert {one.version for one in asked(cluster, "Fetch")} == {version}

    play(scenario)

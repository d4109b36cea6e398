"""Faults by API as they look on the wire: what comes, when, and what does not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.embedded.control.faults import keep_first
from kclient.generated.fetch_response import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kclient.generated.find_coordinator_request import FindCoordinatorRequest
from kclient.generated.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kclient.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from kclient.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.protocol.errors import NONE, REQUEST_TIMED_OUT, UNKNOWN_SERVER_ERROR
from kclient.protocol.headers import request_frame
from kclient.records.writer import NewRecord, build_batch
from kclient.types import TopicPartition
from tests.embedded.raw_client import RawClient
from tests.embedded.raw_producer import produce
from tests.embedded.requests_of import codes, request, served

METADATA = MetadataRequest(topics=None)
VERSION = 9
QUIET = 0.05
SECONDS = 10.0
Test = Callable[[EmbeddedCluster, RawClient], Awaitable[None]]


def run(test: Test, **keys: Any) -> None:
    async def main() -> None:
        async with EmbeddedCluster(topics={"t": 3}, **keys) as cluster, RawClient(cluster) as raw_client:
            await test(cluster, raw_client)

    asyncio.run(main())


class Wire:
    """The bytes of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.sent = 0

    @classmethod
    async def open(cls, cluster: EmbeddedCluster, node: int = 1) -> Wire:
        return cls(*await asyncio.open_connection(*cluster.state.brokers[node].listeners[0].address))

    def send(self, message: Any = METADATA, version: int = VERSION) -> None:
        self.sent += 1
        self.writer.writelines(request_frame(message, version, self.sent, "wire"))

    async def answer(self) -> tuple[int, bytes]:
        """The next frame's correlation id and the rest."""
        async with asyncio.timeout(SECONDS):
            size = int.from_bytes(await self.reader.readexactly(4), "big")
            frame = await self.reader.readexactly(size)
        return int.from_bytes(frame[:4], "big"), frame[4:]

    async def silent(self) -> bool:
        """Whether nothing comes for a while."""
        try:
            async with asyncio.timeout(QUIET):
                return await self.reader.read(1) is None
        except TimeoutError:
            return True

    async def rest(self) -> bytes:
        """What comes until the connection ends."""
        data = b""
        async with asyncio.timeout(SECONDS):
            try:
                while more := await self.reader.read(1000):
                    data += more
            except ConnectionError:
                return data
        return data


def on_wire(test: Callable[[EmbeddedCluster, Wire], Awaitable[None]], **keys: Any) -> None:
    async def main(cluster: EmbeddedCluster, _: RawClient) -> None:
        wire = await Wire.open(cluster)
        try:
            await test(cluster, wire)
        finally:
            wire.writer.close()
            await asyncio.sleep(0)

    run(main, **keys)


# --- errors


HIDE_ERRORS = {("DescribeLogDirs", version) for version in range(3)}
"""Their responses have no place for an error of the whole request: Kafka answers without any directory."""


@pytest.mark.parametrize("release", ["4.3", "2.8", "0.10.0"])
def test_an_error_is_reported_wherever_a_client_looks(release: str) -> None:
    """Every API in every version: no response hides the error, none has another one."""

    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        rows = served(release)
        assert len(rows) >= 20
        for number, (api, version) in enumerate(rows):
            cluster.fail(api, REQUEST_TIMED_OUT)
            response = await raw_client.ask(request(api, version), version, lane=str(number))
            if (api, version) in HIDE_ERRORS:
                assert (codes(response), response.results) == ([NONE], []), (api, version, response)
                continue
            assert REQUEST_TIMED_OUT in codes(response), (api, version, response)
            assert set(codes(response)) <= {NONE, REQUEST_TIMED_OUT}, (api, version, response)

    run(test, release=release)


def test_an_error_comes_so_often_and_nothing_is_done() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        batch = build_batch([NewRecord(None, b"x", cluster.state.clock.wall_ms())])
        tp = TopicPartition("t", 0)
        cluster.fail("Produce", UNKNOWN_SERVER_ERROR, times=2)
        responses = [await produce(cluster, raw_client, tp, batch) for _ in range(3)]
        assert [row.error_code for row in responses] == [UNKNOWN_SERVER_ERROR, UNKNOWN_SERVER_ERROR, NONE]
        assert [row.base_offset for row in responses] == [-1, -1, 0]

    run(test)


def test_a_fault_hits_the_broker_the_client_and_the_request_it_was_made_for() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        async with RawClient(cluster, client_id="other") as other:
            ask = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
            cluster.fail("Metadata", REQUEST_TIMED_OUT, times=None, broker=2)
            assert set(codes(await raw_client.ask(ask, VERSION, node=1))) == {NONE}
            assert REQUEST_TIMED_OUT in codes(await raw_client.ask(ask, VERSION, node=2))
            cluster.lift()
            cluster.fail("Metadata", REQUEST_TIMED_OUT, times=None, client_id="other")
            assert REQUEST_TIMED_OUT not in codes(await raw_client.ask(ask, VERSION))
            assert REQUEST_TIMED_OUT in codes(await other.ask(ask, VERSION))
            cluster.lift()
            cluster.fail(
                "Metadata", REQUEST_TIMED_OUT, times=None, only_if=lambda asked: asked.topics is None
            )
            assert REQUEST_TIMED_OUT not in codes(await raw_client.ask(ask, VERSION))

    run(test, brokers=2)


# --- time


def test_a_delay_holds_up_what_follows_on_the_connection_and_nothing_else() -> None:
    async def test(cluster: EmbeddedCluster, wire: Wire) -> None:
        other = await Wire.open(cluster)
        cluster.delay("FindCoordinator", 30_000, times=1)
        wire.send(FindCoordinatorRequest(key="g"), 1)
        wire.send()
        assert await wire.silent()
        other.send()
        assert (await other.answer())[0] == 1
        cluster.clock.advance(30.0)
        assert [(await wire.answer())[0], (await wire.answer())[0]] == [1, 2]
        other.writer.close()

    on_wire(test)


def test_a_delayed_request_is_not_handled_by_a_broker_that_is_paused_meanwhile() -> None:
    async def test(cluster: EmbeddedCluster, wire: Wire) -> None:
        made = MetadataRequest(topics=[MetadataRequestTopic(name="made")], allow_auto_topic_creation=True)
        cluster.delay("Metadata", 1_000, times=1)
        wire.send(made)
        assert await wire.silent()
        cluster.pause(1)
        cluster.clock.advance(2.0)
        assert await wire.silent()
        assert "made" not in cluster.state.topics
        cluster.resume(1)
        assert (await wire.answer())[0] == 1
        assert "made" in cluster.state.topics

    on_wire(test, brokers=2)


def test_a_delayed_request_dies_with_its_broker() -> None:
    async def test(cluster: EmbeddedCluster, wire: Wire) -> None:
        cluster.delay("Metadata", 1_000, times=1)
        wire.send(MetadataRequest(topics=[MetadataRequestTopic(name="made")], allow_auto_topic_creation=True))
        assert await wire.silent()
        cluster.kill(1)
        assert await wire.rest() == b""
        cluster.clock.advance(2.0)
        await asyncio.sleep(0)
        assert "made" not in cluster.state.topics

    on_wire(test, brokers=2)


@pytest.mark.spec("B.4.6", "F-32")
@pytest.mark.parametrize("version", [0, 5, 9])
def test_a_throttled_connection_is_answered_at_once_and_then_not_read(version: int) -> None:
    """KIP-219: whatever the version, only that newer clients keep silent by themselves."""

    async def test(cluster: EmbeddedCluster, wire: Wire) -> None:
        other = await Wire.open(cluster)
        ask = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
        cluster.throttle("Metadata", 30_000, times=1)
        wire.send(ask, version)
        wire.send(ask, version)
        number, body = await wire.answer()
        assert number == 1
        assert version < 3 or (30_000).to_bytes(4, "big") in body[:5]
        assert await wire.silent()
        other.send(ask, version)
        assert (await other.answer())[0] == 1
        cluster.clock.advance(30.0)
        assert (await wire.answer())[0] == 2
        other.writer.close()

    on_wire(test)


@pytest.mark.spec("B.4.6")
def test_brokers_before_2_0_throttled_by_a_late_response() -> None:
    async def test(cluster: EmbeddedCluster, wire: Wire) -> None:
        cluster.throttle("Metadata", 30_000, times=1)
        wire.send(METADATA, 4)
        wire.send(METADATA, 4)
        assert await wire.silent()
        cluster.clock.advance(30.0)
        assert [(await wire.answer())[0], (await wire.answer())[0]] == [1, 2]

    on_wire(test, release="1.1")


# --- what does not come


@pytest.mark.parametrize("handled", [True, False])
def test_a_dropped_request_is_never_answered_and_the_connection_continues(handled: bool) -> None:
    async def test(cluster: EmbeddedCluster, wire: Wire) -> None:
        cluster.drop("Metadata", handled=handled)
        wire.send(MetadataRequest(topics=[MetadataRequestTopic(name="made")], allow_auto_topic_creation=True))
        wire.send()
        assert (await wire.answer())[0] == 2
        assert ("made" in cluster.state.topics) is handled

    on_wire(test)


@pytest.mark.parametrize("after", [0, 1, 4, 7, 20])
def test_a_response_is_cut_at_a_byte(after: int) -> None:
    async def test(cluster: EmbeddedCluster, wire: Wire) -> None:
        wire.send()
        _, whole = await wire.answer()
        cluster.cut("Metadata", after=after)
        wire.send()
        wire.send()
        size = (len(whole) + 4).to_bytes(4, "big")
        assert await wire.rest() == (size + (2).to_bytes(4, "big") + whole)[:after]

    on_wire(test)


def test_a_cut_needs_no_response() -> None:
    """Produce without acks has none; the connection ends all the same, and the records are there."""

    async def test(cluster: EmbeddedCluster, wire: Wire) -> None:
        batch = build_batch([NewRecord(None, b"x", cluster.state.clock.wall_ms())])
        row = PartitionProduceData(index=0, records=batch)
        topic = TopicProduceData(name="t", partition_data=[row])
        cluster.cut("Produce", after=10)
        wire.send(ProduceRequest(acks=0, topic_data=[topic]), VERSION)
        assert await wire.rest() == b""
        assert cluster.state.topics["t"].partitions[0].log.end == 1

    on_wire(test)


# --- what comes instead


@pytest.mark.spec("F-36")
def test_a_partial_response_keeps_the_first() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        rows = [ListOffsetsPartition(partition_index=number, timestamp=-1) for number in range(3)]
        ask = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=rows)])
        for keep in (0, 2, 5):
            cluster.partial("ListOffsets", keep=keep)
            response = await raw_client.ask(ask, 5)
            kept = [row.partition_index for topic in response.topics for row in topic.partitions]
            assert kept == list(range(3))[:keep]
        assert len((await raw_client.ask(ask, 5)).topics[0].partitions) == 3

    run(test)


@pytest.mark.spec("F-36")
def test_a_partial_response_says_all_of_the_partitions_that_it_keeps() -> None:
    aborted = [AbortedTransaction(producer_id=number, first_offset=number) for number in range(3)]
    rows = [PartitionData(partition_index=number, aborted_transactions=aborted) for number in range(2)]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=rows)])
    keep_first(1)(METADATA, response)
    (kept,) = response.responses[0].partitions
    assert (kept.partition_index, kept.aborted_transactions) == (0, aborted)


@pytest.mark.spec("F-36")
def test_a_response_becomes_another_one() -> None:
    def doubled(_: Any, response: Any) -> Any:
        response.topics += response.topics
        return response

    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        rule = cluster.on("Metadata", doubled)
        for _ in range(2):
            assert [topic.name for topic in (await raw_client.ask(METADATA, VERSION)).topics] == ["t", "t"]
        cluster.lift(rule)
        assert [topic.name for topic in (await raw_client.ask(METADATA, VERSION)).topics] == ["t"]

    run(test)


def test_several_faults_hit_one_request() -> None:
    async def test(cluster: EmbeddedCluster, wire: Wire) -> None:
        cluster.delay("*", 1_000, times=1)
        cluster.throttle("Metadata", 7, times=1)
        cluster.cut("Metadata", after=13)
        wire.send()
        assert await wire.silent()
        cluster.clock.advance(1.0)
        data = await wire.rest()
        assert data[4:] == (1).to_bytes(4, "big") + b"\x00" + (7).to_bytes(4, "big")

    on_wire(test)

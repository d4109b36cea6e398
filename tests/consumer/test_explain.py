"""explain(): each sentence, brought about on an embedded cluster."""

from __future__ import annotations

import asyncio
import datetime
import logging
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kclient import AsyncConsumer, Consumer, RebalanceListener, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import CorruptBatchError, DecodeError, TopicAuthorizationError, UnknownTopicError
from tests.consumer.mini_broker import FAST
from tests.embedded.raw_client import RawClient
from tests.embedded.raw_producer import RawProducer
from tests.waiting import until

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)

pytestmark = pytest.mark.spec("U-06")


@asynccontextmanager
async def reading(
    kafka: EmbeddedCluster, *partitions: TopicPartition, **settings: Any
) -> AsyncIterator[AsyncConsumer]:
    """A consumer of these partitions that was never polled."""
    keys = {"bootstrap_servers": kafka.bootstrap_servers, "auto_offset_reset": "earliest"}
    async with AsyncConsumer(**{**FAST, **keys, **settings}) as consumer:
        if partitions:
            await consumer.assign(partitions)
        yield consumer


async def says(consumer: AsyncConsumer, tp: TopicPartition, pattern: str, *, ask: bool = False) -> str:
    """Wait until the sentence of a partition matches from its beginning."""
    sentence = ""
    try:
        async with asyncio.timeout(10):
            while not re.match(  # noqa: ASYNC110
                pattern, sentence := (await consumer.explain(ask=ask))[tp]
            ):
                await asyncio.sleep(0.002)
    except TimeoutError:
        raise AssertionError(f"{sentence!r} never became {pattern!r}") from None
    return sentence


def on_a_cluster(
    play: Callable[[EmbeddedCluster], Awaitable[None]], brokers: int = 1, partitions: int = 1
) -> None:
    async def main() -> None:
        async with EmbeddedCluster(brokers=brokers, topics={"a": partitions}) as kafka:
            await play(kafka)

    asyncio.run(asyncio.wait_for(main(), 30))


def test_before_anything_is_asked_for_it_says_what_to_call() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        async with reading(kafka) as consumer:
            nothing = await consumer.explain()
            assert len(nothing) == 0
            assert str(nothing).startswith("not assigned: nothing is subscribed to; call subscribe()")
            await consumer.assign([A0])
            assert (await consumer.explain()).consumer.startswith("not connected")
            assert not kafka.requests

    on_a_cluster(play)


def test_at_the_end_names_the_position_and_the_fetch_that_waits_there() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        kafka.produce("a", ["0", "1"])
        async with reading(kafka, A0) as consumer:
            assert len(await consumer.poll(5)) == 2
            sentence = await says(consumer, A0, r"at the end: position 2 is the high watermark.*in flight")
            assert re.search(r"a Fetch is in flight to node \d+ for 0\.\d s$", sentence)
            explanation = await consumer.explain()
            assert explanation.consumer == "1 partitions are assigned by hand"
            assert str(explanation).splitlines()[1].startswith("a-0  at the end")

    on_a_cluster(play)


def test_at_the_end_says_that_it_began_there_until_something_was_read() -> None:
    """The first question of newcomers: why does my new group read nothing of what is there?"""

    async def play(kafka: EmbeddedCluster) -> None:
        kafka.produce("a", ["0", "1"])
        async with reading(kafka, A0, auto_offset_reset="latest") as consumer:
            assert not await consumer.poll(0.1)
            await says(
                consumer, A0, r"at the end: position 2 is .* It began there, so the records before it are"
            )
            kafka.produce("a", ["2"])
            assert len(await consumer.poll(5)) == 1
            assert "It began there" not in await says(consumer, A0, r"at the end: position 3 is")
            consumer.seek_to_beginning([A0])
            while consumer.current_lag(A0) != 0:
                await consumer.poll(1)
            assert "It began there" not in await says(consumer, A0, r"at the end: position 3 is")

    on_a_cluster(play)


def test_at_the_end_of_an_empty_log_nothing_was_left_out() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        async with reading(kafka, A0, auto_offset_reset="latest") as consumer:
            assert not await consumer.poll(0.1)
            assert "It began there" not in await says(consumer, A0, r"at the end: position 0 is")

    on_a_cluster(play)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_without_partitions_says_that_it_has_none(protocol: str) -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        settings = {"bootstrap_servers": kafka.bootstrap_servers, "group_id": "g", "group_protocol": protocol}
        async with AsyncConsumer(config=settings) as first, AsyncConsumer(config=settings) as second:
            await first.subscribe(["a"])
            await second.subscribe(["a"])

            async with asyncio.timeout(20):
                while True:
                    await asyncio.gather(first.poll(0.05), second.poll(0.05))
                    says = [(await one.explain()).consumer for one in (first, second)]
                    if sum("no partition is assigned to it, as happens" in said for said in says) == 1:
                        break
            owner = first if first.assignment() else second
            assert "no partition" not in (await owner.explain()).consumer

    on_a_cluster(play)


def test_paused_buffered_and_ready() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        kafka.produce("a", ["0", "1"])
        async with reading(kafka, A0) as consumer:
            await consumer.poll(0)
            await says(consumer, A0, r"ready: \d+ bytes from offset 0 on wait for the next poll")
            consumer.pause([A0])
            await says(consumer, A0, r"paused: resume\(\) lets it go on; \d+ bytes are buffered$")
            consumer.resume([A0])
            await says(consumer, A0, "ready")

    on_a_cluster(play)


def test_the_records_a_loop_holds_are_ready_too() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        kafka.produce("a", ["0", "1", "2"])
        async with reading(kafka, A0) as consumer:
            async for record in consumer:
                assert record.offset == 0
                assert (await consumer.explain())[
                    A0
                ] == "ready: offset 1 is next in the loop over this consumer"
                break

    on_a_cluster(play)


@pytest.mark.parametrize(
    ("api", "words"),
    [
        ("OffsetFetch", r"waiting for the committed offset \(OffsetFetch\): the response is on its way"),
        ("FindCoordinator", r"waiting for the committed offset.*the group's coordinator is not known yet"),
        ("ListOffsets", r"waiting for the offset to begin at \(ListOffsets\), earliest: the response is on"),
        ("Fetch", r"a Fetch is in flight to node \d+ for 0\.\d s"),
    ],
)
def test_a_question_without_a_response_is_named(api: str, words: str) -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        kafka.drop(api, times=None)
        async with reading(kafka, A0, group_id="g", enable_auto_commit=False) as consumer:
            await consumer.poll(0.1)
            await says(consumer, A0, words)
            kafka.lift()

    on_a_cluster(play)


@pytest.mark.parametrize(
    ("api", "error", "words"),
    [
        ("OffsetFetch", "UNSTABLE_OFFSET_COMMIT", r"waiting for the committed offset"),
        ("ListOffsets", "LEADER_NOT_AVAILABLE", r"waiting for the offset.*backing off, asked again in \d"),
        (
            "Fetch",
            "REPLICA_NOT_AVAILABLE",
            r"backing off, node \d+ is asked again in \d.*REPLICA_NOT_AVAILABLE \(9\)",
        ),
    ],
)
def test_backing_off_says_for_how_long_and_why(api: str, error: str, words: str) -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        kafka.produce("a", ["0"])
        kafka.fail(api, error, times=None)
        slow = {"retry_backoff_ms": 1_000, "retry_backoff_max_ms": 1_000}
        async with reading(kafka, A0, group_id="g", enable_auto_commit=False, **slow) as consumer:
            await consumer.poll(0.1)
            await says(consumer, A0, words)
            kafka.lift()

    on_a_cluster(play)


def test_a_missing_leader_is_reported() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        kafka.create("b", replication=1)
        kafka.produce("b", ["0"])
        tp = TopicPartition("b", 0)
        async with reading(kafka, tp) as consumer:
            assert len(await consumer.poll(5))
            kafka.kill(kafka.leader_of("b", 0))
            await says(consumer, tp, "waiting for a leader: no leader is known")

    on_a_cluster(play, brokers=3)


def test_a_position_that_is_being_checked_is_said() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        kafka.produce("a", ["0"])
        async with reading(kafka, A0) as consumer:
            assert len(await consumer.poll(5))
            kafka.drop("OffsetForLeaderEpoch", times=None)
            kafka.move_leader("a", 0)
            await says(
                consumer, A0, "waiting for the check of its position against the leader's log.*on its way"
            )
            kafka.lift()

    on_a_cluster(play, brokers=2)


def test_partitions_and_topics_that_are_not_there() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        missing, strange = TopicPartition("a", 7), TopicPartition("nowhere", 0)
        async with reading(kafka, missing, strange, allow_auto_create_topics=False) as consumer:
            await consumer.poll(0.1)
            await says(consumer, missing, "waiting for the offset.*the topic has no such partition")
            await says(consumer, strange, "waiting for the offset.*the topic does not exist")

    on_a_cluster(play)


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "kclient.consumer"]


def test_a_misspelt_topic_that_the_brokers_create_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """It once stayed silent: an empty topic that a consumer waits at for ever."""

    async def play(kafka: EmbeddedCluster) -> None:
        kafka.create_topic("flights", 1)
        async with AsyncConsumer(
            "flihgts",
            bootstrap_servers=kafka.bootstrap_servers,
            group_id="g",
            missing_topic_timeout_ms=60_000,
        ) as consumer:
            async with asyncio.timeout(10):
                while not consumer.assignment() or "Did you mean" not in caplog.text:
                    await consumer.poll(0.05)
            explained = await consumer.explain()
            assert "'flihgts' did not exist until asked for: created by the brokers" in explained.consumer
            await consumer.subscribe(["flights"])
            assert "flihgts" not in (await consumer.explain()).consumer

    with caplog.at_level(logging.WARNING, "kclient.consumer"):
        on_a_cluster(play)
    [created] = warnings_of(caplog)
    assert created.startswith(
        "topic 'flihgts' did not exist, and was created after this consumer asked for it"
    )
    assert "Did you mean 'flights'?" in created
    assert "allow_auto_create_topics=False" in created


def test_a_topic_that_comes_later_is_waited_for_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        async with AsyncConsumer(
            "later",
            bootstrap_servers=kafka.bootstrap_servers,
            group_id="g",
            missing_topic_timeout_ms=60_000,
            allow_auto_create_topics=False,
            auto_offset_reset="earliest",
            metadata_max_age_ms=100,
        ) as consumer:
            async with asyncio.timeout(10):
                while not warnings_of(caplog):
                    await consumer.poll(0.05)
                assert "; topic 'later' does not exist" in (await consumer.explain()).consumer
                kafka.create_topic("later", 1)
                kafka.produce("later", ["x"])
                while not len(await consumer.poll(0.1)):
                    pass
            assert "exist" not in (await consumer.explain()).consumer

    with caplog.at_level(logging.WARNING, "kclient.consumer"):
        on_a_cluster(play)
    assert len(warnings_of(caplog)) == 1


def test_a_topic_that_is_deleted_and_created_again_is_no_misspelt_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        kafka.produce("a", ["x"])
        settings = {"group_id": "g", "auto_offset_reset": "earliest", "metadata_max_age_ms": 50}
        async with AsyncConsumer("a", bootstrap_servers=kafka.bootstrap_servers, **settings) as consumer:
            assert len(await consumer.poll(5))
            kafka.delete_topic("a")
            async with asyncio.timeout(10):
                while "Positions were not in the log any more and jumped" not in caplog.text:
                    await consumer.poll(0.05)
            for _ in range(10):
                await consumer.poll(0.05)

    with caplog.at_level(logging.WARNING, "kclient.consumer"):
        on_a_cluster(play)
    assert not [text for text in warnings_of(caplog) if "was created after" in text]


def test_a_topic_that_exists_is_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        kafka.produce("a", ["x"])
        async with AsyncConsumer(
            "a", bootstrap_servers=kafka.bootstrap_servers, group_id="g", auto_offset_reset="earliest"
        ) as consumer:
            assert len(await consumer.poll(5))

    with caplog.at_level(logging.WARNING, "kclient.consumer"):
        on_a_cluster(play)
    assert warnings_of(caplog) == []


def test_an_error_that_waits_for_the_next_poll_is_reported_without_taking_it() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        async with reading(kafka, A0, auto_offset_reset="none") as consumer:
            await consumer.poll(0)
            sentence = await says(
                consumer, A0, r"the next poll\(\) raises NoOffsetError: No offset is committed"
            )
            assert (await consumer.explain())[A0] == sentence
            with pytest.raises(Exception, match="No offset is committed"):
                await consumer.poll(1)

    on_a_cluster(play)


def test_a_response_with_partitions_that_were_not_requested_is_called_that() -> None:
    def renumbered(_: Any, response: Any) -> Any:
        for topic in response.responses:
            for partition in topic.partitions:
                partition.partition_index += 1
        return response

    async def play(kafka: EmbeddedCluster) -> None:
        kafka.produce("a", ["0"])
        kafka.on("Fetch", renumbered)
        async with reading(kafka, A0) as consumer:
            await consumer.poll(0)
            await says(
                consumer, A0, r"backing off, node \d+ is asked.*: it answered with other partitions than"
            )

    on_a_cluster(play)


def test_a_topic_that_may_not_be_read() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        kafka.produce("a", ["0"])
        kafka.deny("User:ANONYMOUS", "READ", "Topic:a")
        slow = {"retry_backoff_ms": 1_000, "retry_backoff_max_ms": 1_000}
        async with reading(kafka, A0, **slow) as consumer:
            await consumer.poll(0)
            await says(consumer, A0, r"the next poll\(\) acts on TOPIC_AUTHORIZATION_FAILED \(29\)")
            with pytest.raises(TopicAuthorizationError):
                await consumer.poll(1)
            await says(consumer, A0, r"backing off, node \d+ is asked.*TOPIC_AUTHORIZATION_FAILED \(29\)")

    on_a_cluster(play)


def test_a_record_that_cannot_be_decoded_and_how_to_go_past_it() -> None:
    def broken(topic: str, headers: object, data: bytes) -> str:
        if data == b"1":
            raise ValueError(data)
        return data.decode()

    async def play(kafka: EmbeddedCluster) -> None:
        kafka.produce("a", ["0", "1", "2"])
        async with reading(kafka, A0, value_deserializer=broken) as consumer:
            assert len(await consumer.poll(5)) == 1
            with pytest.raises(DecodeError):
                await consumer.poll(5)
            sentence = (await consumer.explain())[A0]
            assert sentence.startswith("stuck at offset 1 until you seek: The value deserializer failed")
            assert "seek to offset 2" in sentence
            consumer.seek(A0, 2)
            await says(consumer, A0, "ready")

    on_a_cluster(play)


def test_a_full_buffer_names_its_limit() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        for node in (A0, A1):
            kafka.produce("a", ["x" * 50_000] * 4, partition=node.partition)
        small = {
            "buffer_memory_bytes": 100_000,
            "max_partition_fetch_bytes": 60_000,
            "fetch_max_bytes": 60_000,
        }
        async with reading(kafka, A0, A1, **small) as consumer:
            consumer.pause([A1])
            await consumer.poll(0)
            await says(consumer, A0, "ready")
            consumer.resume([A1])
            sentence = await says(
                consumer, A1, r"buffer full: \d+ of 100000 bytes \(buffer_memory_bytes\) are in use"
            )
            assert sentence.endswith("poll() makes room")
            while len(await consumer.poll(5, max_records=100)) < 4:
                pass
            await says(consumer, A1, "ready|at the end")

    on_a_cluster(play, partitions=2)


@pytest.mark.spec("U-04")
def test_an_open_transaction_is_named_with_its_producer_and_its_beginning() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        async with (
            RawClient(kafka) as raw_client,
            reading(kafka, A0, isolation_level="read_committed") as consumer,
        ):
            producer = RawProducer(kafka, raw_client, "t")
            await producer.init()
            await producer.transact(A0, b"0", commit=True)
            while not len(await consumer.poll(5)):
                pass
            before = kafka.state.clock.wall_ms() // 1000
            await producer.begin_write(A0, b"open")
            kafka.produce("a", ["behind it"])
            await says(consumer, A0, "waiting for open transaction: explain.ask=True. asks whose")
            sent = len([request for request in kafka.requests if _peeks(request)])
            sentence = await says(consumer, A0, "waiting for open transaction: producer id", ask=True)
            assert f"producer id {producer.producer_id}, since " in sentence
            assert any(f"since {_clock(second)} UTC" in sentence for second in range(before, before + 30))
            assert "ends at offset 2, 2 offsets before the high watermark" in sentence
            peeks = [request for request in kafka.requests if _peeks(request)]
            assert (sent, len(peeks)) == (0, 1)
            await producer.end(commit=False)
            assert [record.value for record in await consumer.poll(5)] in ([], [b"behind it"])

    on_a_cluster(play)


def _peeks(request: Any) -> bool:
    return request.api == "Fetch" and request.request.isolation_level == 0


def _clock(second: int) -> str:
    return f"{datetime.datetime.fromtimestamp(second, datetime.UTC):%H:%M:%S}"


def test_joining_a_group_says_for_how_long_and_what_it_waits_for() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        rule = kafka.delay("JoinGroup", ms=10_000)
        async with reading(kafka, group_id="g") as consumer:
            await consumer.subscribe(["a"])
            await consumer.poll(0)

            async def consumer_says(words: str) -> None:
                async with asyncio.timeout(10):
                    while not re.match(words, (await consumer.explain()).consumer):
                        await consumer.poll(0)

            await consumer_says(
                r"not assigned: group g joining \(JoinGroup .* for \d+\.\d s, subscribed to a$"
            )
            kafka.lift(rule)
            await until(lambda: True)

    on_a_cluster(play)


def test_a_member_reports_its_generation_and_a_rebalance_that_waits_for_a_poll() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        async with reading(kafka, group_id="g") as consumer:
            await consumer.subscribe(["a"])
            while not consumer.assignment():
                await consumer.poll(0.1)
            assert (await consumer.explain()).consumer == "member of group g, generation 1, subscribed to a"
            consumer.enforce_rebalance()
            async with asyncio.timeout(10):
                while (  # noqa: ASYNC110
                    await consumer.explain()
                ).consumer != "a rebalance waits for the next poll() to go on":
                    await asyncio.sleep(0.002)

    on_a_cluster(play)


def test_a_thread_may_ask_too() -> None:
    with EmbeddedCluster(brokers=1, topics={"a": 1}) as kafka:
        kafka.produce("a", ["0"])
        with Consumer(bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([A0])
            assert len(consumer.poll(5)) == 1
            assert consumer.explain()[A0].startswith("at the end: position 1 is the high watermark")


def test_a_damaged_batch_is_reported_with_the_offset_to_seek_to() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        kafka.produce("a", ["0"])
        kafka.on("Fetch", damaged, times=None)
        async with reading(kafka, A0) as consumer:
            with pytest.raises(CorruptBatchError):
                await consumer.poll(5)
            assert re.match(
                "stuck at offset 0 until you seek: .*seek to offset 1", (await consumer.explain())[A0]
            )

    on_a_cluster(play)


def damaged(request: Any, response: Any) -> Any:
    for topic in response.responses:
        for partition in topic.partitions:
            if partition.records:
                data = bytearray(partition.records)
                data[-1] ^= 1
                partition.records = bytes(data)
    return response


def test_the_replica_that_is_read_from_is_named() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        kafka.produce("a", ["0"])
        other = next(node for node in (1, 2) if node != kafka.leader_of("a", 0))
        kafka.set_follower("a", 0, other)
        async with reading(kafka, A0, client_rack="r") as consumer:
            assert len(await consumer.poll(5)) == 1
            await says(consumer, A0, rf"at the end.*in flight to node {other} \(the preferred replica\) for")

    on_a_cluster(play, brokers=2)


def test_an_offset_out_of_range_is_reported_while_its_bounds_are_requested() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        async with reading(kafka, A0, auto_offset_reset="none") as consumer:
            kafka.delay("ListOffsets", ms=400)
            consumer.seek(A0, 77)
            while not (await consumer.explain())[A0].startswith("offset 77 is not in the log"):
                await consumer.poll(0)
            await says(consumer, A0, r"the next poll\(\) raises OffsetOutOfRangeError: Offset 77 of a-0")
            kafka.lift()

    on_a_cluster(play)


class Asking(RebalanceListener):
    """Asks why nothing comes while its partitions are taken away."""

    def __init__(self) -> None:
        self.consumer: AsyncConsumer | None = None
        self.heard: list[str] = []

    async def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        if self.consumer is not None and partitions:
            self.heard.append((await self.consumer.explain())[partitions[0]])


def test_a_partition_that_is_being_taken_away_says_so() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        asking = Asking()
        async with reading(kafka, group_id="g", heartbeat_interval_ms=20) as consumer:
            asking.consumer = consumer
            await consumer.subscribe(["a"], listener=asking)
            while not consumer.assignment():
                await consumer.poll(0.1)
            consumer.enforce_rebalance()
            async with asyncio.timeout(10):
                while not asking.heard:
                    await consumer.poll(0.1)
            asking.consumer = None
        assert asking.heard[0] == "given back: a rebalance takes it away at the next poll()"

    on_a_cluster(play)


def test_without_a_coordinator_the_group_is_not_joined_and_says_why() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        kafka.fail("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", times=None)
        async with reading(kafka, group_id="g") as consumer:
            await consumer.subscribe(["a"])
            await consumer.poll(0.2)
            said = await consumer.explain()
            assert said.consumer.startswith(
                "not assigned: group g not joined yet, subscribed to a; its coordinator is being"
            )
            assert not said

    on_a_cluster(play)


def test_a_partition_after_a_full_one_of_the_same_node_names_that_one() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        async with reading(kafka, A0, A1) as consumer:
            kafka.produce("a", ["0"], partition=0)
            await consumer.poll(0)
            await says(consumer, A0, "ready")
            # One chunk is drained, one waits: there is no room for a third.
            kafka.produce("a", ["1"], partition=0)
            await says(
                consumer, A1, "at the end.*node 1 is asked when poll.. has taken what is buffered of a-0"
            )
            assert [len(await consumer.poll(5)) for _ in range(2)] == [1, 1]
            await says(consumer, A1, "at the end.*a Fetch is in flight")

    on_a_cluster(play, partitions=2)


def test_thousands_of_partitions_are_explained_at_once() -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        kafka.create("many", partitions=2_000)
        many = [TopicPartition("many", number) for number in range(2_000)]
        async with reading(kafka, *many) as consumer:
            await consumer.poll(0)
            await says(consumer, many[-1], "at the end")
            began = time.process_time()
            explanation = await consumer.explain()
            assert len(explanation) == 2_000
            assert time.process_time() - began < 1.0  # a look at all partitions for each would take many

    on_a_cluster(play)


MISSPELT = """
import sys
from kclient import Consumer
with Consumer("flihgts", bootstrap_servers=sys.argv[1], group_id="g") as consumer:
    while not consumer.assignment():
        consumer.poll(0.05)
    consumer.poll(0.5)
"""


def test_the_warning_reaches_a_program_that_has_not_configured_logging() -> None:
    with EmbeddedCluster(topics={"flights": 1}) as kafka:
        done = subprocess.run(
            [sys.executable, "-c", MISSPELT, kafka.bootstrap_servers],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    [line] = done.stderr.splitlines()
    assert "topic 'flihgts' did not exist, and was created after this consumer asked for it" in line
    assert "Did you mean 'flights'?" in line


MISTAKES = """
import sys
from kclient import Consumer
from kclient.errors import PortClosedError
with Consumer("flights", bootstrap_servers="127.0.0.1:1", group_id="g") as consumer:
    try:
        consumer.poll(5.0)
    except PortClosedError as exc:
        print(exc)
with Consumer("late", bootstrap_servers=sys.argv[1], group_id="g", allow_auto_create_topics=False) as consumer:
    for _ in range(3):
        consumer.poll(0.1)
    print("create", flush=True)
    sys.stdin.readline()
    while not consumer.assignment():
        consumer.poll(0.05)
"""


def test_what_an_error_reports_and_a_topic_created_within_a_second_are_not_warned_of() -> None:
    """The text of a wrong port stood there twice; so did a topic that came a moment later, beside the leader's word."""
    with (
        EmbeddedCluster(topics={"flights": 1}) as kafka,
        subprocess.Popen(
            [sys.executable, "-c", MISTAKES, kafka.bootstrap_servers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as child,
    ):
        assert child.stdout is not None
        assert "Nothing listens on that port" in child.stdout.readline()
        assert child.stdout.readline() == "create\n"
        kafka.create_topic("late", 1)
        _, output = child.communicate("\n", timeout=30)
    assert output == ""


def test_a_topic_that_stays_missing_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    async def play(kafka: EmbeddedCluster) -> None:
        settings = {"group_id": "g", "allow_auto_create_topics": False, "missing_topic_timeout_ms": 1500}
        async with AsyncConsumer("late", bootstrap_servers=kafka.bootstrap_servers, **settings) as consumer:
            with pytest.raises(UnknownTopicError):
                await consumer.poll(10.0)

    with caplog.at_level(logging.WARNING, "kclient"):
        on_a_cluster(play)
    [missing] = [record.getMessage() for record in caplog.records]
    assert missing.startswith("topic 'late' does not exist; the consumer waits for it")

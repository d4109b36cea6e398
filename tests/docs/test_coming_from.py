"""docs/coming-from: the tables name every call and option of the other clients, and their behaviour is as described.

The clients that are installed are asked; they read from the embedded cluster.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import pytest

from kclient import AsyncConsumer, Consumer, TopicPartition
from kclient.config.model import keys
from kclient.config.spellings import NOT_NEEDED, OTHER_SPELLINGS
from kclient.consumer.other_calls import OTHER_CALLS, OTHER_KEYWORDS
from kclient.embedded import EmbeddedCluster
from kclient.errors import OffsetOutOfRangeError, PortClosedError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the import of kafka-python calls what Python deprecates
    import kafka as kafka_python

PAGES = {
    page.stem: page.read_text() for page in (Path(__file__).parents[2] / "docs" / "coming-from").glob("*.md")
}
OURS = {field.name: field.default for field in keys()}
ORDERS = TopicPartition("orders", 0)

# javap -cp kafka-clients-4.4.0.jar org.apache.kafka.clients.consumer.Consumer
JAVA = set(
    re.findall(
        r"\w+",
        """assign assignment beginningOffsets clientInstanceId close commitAsync commitSync committed currentLag
        endOffsets enforceRebalance groupMetadata listTopics metrics offsetsForTimes partitionsFor pause paused poll
        position registerMetricForSubscription resume seek seekToBeginning seekToEnd subscribe subscription
        unregisterMetricFromSubscription unsubscribe wakeup""",
    )
)


def rows(page: str, section: str) -> list[tuple[str, str]]:
    """The two cells of each row of a section's table."""
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGES[page], re.MULTILINE | re.DOTALL)
    return [
        (one, other) for one, other in re.findall(r"^\| (.*?) \| (.*) \|$", text, re.MULTILINE) if "`" in one
    ]


def public(owner: type) -> set[str]:
    return {name for name in dir(owner) if name[0].islower()}


def parameters() -> dict[str, dict[str, Any]]:
    """Client → option → default."""
    signature = inspect.signature(aiokafka.AIOKafkaConsumer.__init__).parameters
    asyncio_client = {name: one.default for name, one in signature.items() if name not in ("self", "topics")}
    return {"aiokafka": asyncio_client, "kafka-python": dict(kafka_python.KafkaConsumer.DEFAULT_CONFIG)}


@pytest.mark.parametrize(
    ("page", "calls"),
    [
        ("confluent-kafka", public(confluent_kafka.Consumer)),
        ("aiokafka", public(aiokafka.AIOKafkaConsumer)),
        ("kafka-python", public(kafka_python.KafkaConsumer)),
        ("java", JAVA),
    ],
)
def test_every_call_of_the_other_client_is_in_the_table(page: str, calls: set[str]) -> None:
    named = set(re.findall(r"\b(\w+)\b", " ".join(theirs for theirs, _ in rows(page, "Calls"))))
    assert calls - named == set()


def test_a_call_that_only_other_clients_have_is_answered() -> None:
    theirs = set().union(
        *map(public, (confluent_kafka.Consumer, aiokafka.AIOKafkaConsumer, kafka_python.KafkaConsumer))
    )
    assert set(OTHER_CALLS) == theirs - public(Consumer) == theirs - public(AsyncConsumer)
    consumer = Consumer(bootstrap_servers="localhost:9092")
    with pytest.raises(
        AttributeError, match=r"another client's: write poll\(timeout, max_records=N\)"
    ) as caught:
        consumer.consume(10)  # type: ignore[attr-defined]
    assert (caught.value.name, caught.value.obj) == ("consume", consumer)
    with pytest.raises(AttributeError, match=r"no attribute 'pol'$"):
        consumer.pol()  # type: ignore[attr-defined]
    assert not hasattr(consumer, "start")
    named = set(re.findall(r"(\w+)\(", " ".join(OTHER_CALLS.values())))
    assert named <= public(Consumer)


def test_keyword_arguments_of_other_clients_are_answered() -> None:
    for call, keywords in OTHER_KEYWORDS.items():
        ours = set(inspect.signature(getattr(Consumer, call)).parameters)
        theirs = set()
        for client in (aiokafka.AIOKafkaConsumer, kafka_python.KafkaConsumer):
            theirs |= set(inspect.signature(getattr(client, call)).parameters)
        assert theirs - ours <= set(keywords)
        assert not set(keywords) & ours
        # confluent-kafka's are written in C, and named in their docstrings
        assert all(
            name in str(getattr(confluent_kafka.Consumer, call).__doc__) for name in set(keywords) - theirs
        )
    consumer = Consumer(bootstrap_servers="localhost:9092", group_id="g")
    with pytest.raises(TypeError, match=r"'on_assign', which is another client's: write listener="):
        consumer.subscribe(["orders"], on_assign=print)  # type: ignore[call-arg]
    with pytest.raises(
        TypeError, match=r"'message', which is another client's: write commit\({TopicPartition"
    ):
        consumer.commit(message=None)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'offset'$|Did you mean 'offsets'"):
        consumer.commit(offset={})  # type: ignore[call-arg]

    async def play() -> None:
        other = AsyncConsumer(bootstrap_servers="localhost:9092", group_id="g")
        with pytest.raises(TypeError, match="'on_revoke', which is another client's"):
            await other.subscribe(["orders"], on_revoke=print)  # type: ignore[call-arg]
        await other.close()

    asyncio.run(play())
    consumer.close()


@pytest.mark.parametrize("page", ["confluent-kafka", "aiokafka", "kafka-python", "java"])
def test_the_calls_that_the_tables_name_exist(page: str) -> None:
    cells = " ".join(ours for _, ours in rows(page, "Calls"))
    elsewhere = {
        "compile",
        "SubscriptionPattern",
        "of",
        "next_offsets",
        "partitions",
        "Consumer",
        "TopicPartition",
    }
    named = set(re.findall(r"(\w+)\(", " ".join(re.findall(r"`([^`]*)`", cells))))
    assert len(named) >= 10
    assert named - elsewhere <= public(Consumer) & public(AsyncConsumer)


@pytest.mark.parametrize("page", ["aiokafka", "kafka-python"])
def test_every_option_that_is_not_ours_or_has_another_default_is_in_the_table(page: str) -> None:
    named = set(re.findall(r"(?<!= )`(\w+)`", " ".join(theirs for theirs, _ in rows(page, "Options"))))
    different = {name for name, default in parameters()[page].items() if OURS.get(name, ...) != default}
    assert different - named == set()
    assert named - parameters()[page].keys() == set(), "an option that this client does not have"


@pytest.mark.parametrize("spelling", [*OTHER_SPELLINGS, *NOT_NEEDED])
def test_a_spelling_that_errors_explain_is_in_a_table(spelling: str) -> None:
    found = [
        ours
        for page in ("confluent-kafka", "aiokafka", "kafka-python")
        for theirs, ours in rows(page, "Options")
        if spelling in re.sub(r"\.", "_", theirs)
    ]
    assert found
    if target := OTHER_SPELLINGS.get(spelling):
        assert any(target[-12:] in re.sub(r"[.…]", "_", ours) for ours in found)


# --- behaviour


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1, topics={"orders": 1}) as kafka:
        kafka.produce("orders", ["a", "b", "c"])
        yield kafka


def confluent(cluster: EmbeddedCluster, group: str, **settings: Any) -> confluent_kafka.Consumer:
    base = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
    }
    return confluent_kafka.Consumer({**base, **settings})


def first(poll: Callable[[], Any]) -> Any:
    """The first result that is not empty."""
    while not (found := poll()):
        pass
    return found


def committed(cluster: EmbeddedCluster, group: str) -> int | None:
    return cluster.committed(group).get(ORDERS)


def eventually(expected: int, cluster: EmbeddedCluster, group: str) -> bool:
    """Whether the group commits this offset within ten seconds."""
    end = time.monotonic() + 10
    while committed(cluster, group) != expected and time.monotonic() < end:
        time.sleep(0.05)
    return committed(cluster, group) == expected


def test_confluent_kafka_commits_the_message_in_hand_by_a_timer(cluster: EmbeddedCluster) -> None:
    consumer = confluent(cluster, "ck-timer", **{"auto.commit.interval.ms": 100})
    consumer.subscribe(["orders"])
    assert first(lambda: consumer.poll(1.0)).offset() == 0
    assert eventually(1, cluster, "ck-timer")
    consumer.close()


def test_confluent_kafka_commits_the_message_whose_handler_raised(cluster: EmbeddedCluster) -> None:
    with suppress(ZeroDivisionError), confluent(cluster, "ck-raise") as consumer:
        consumer.subscribe(["orders"])
        first(lambda: consumer.poll(1.0))
        _ = 1 / 0
    assert committed(cluster, "ck-raise") == 1


def test_aiokafka_commits_the_record_in_hand_by_a_timer(cluster: EmbeddedCluster) -> None:
    async def hold() -> bool:
        async with aiokafka.AIOKafkaConsumer(
            "orders",
            bootstrap_servers=cluster.bootstrap_servers,
            group_id="aio",
            auto_offset_reset="earliest",
            auto_commit_interval_ms=100,
        ) as consumer:
            await consumer.getmany(timeout_ms=5000)
            return await asyncio.to_thread(eventually, 3, cluster, "aio")

    assert asyncio.run(hold())


def test_kafka_python_commits_the_whole_batch_in_close(cluster: EmbeddedCluster) -> None:
    consumer = kafka_python.KafkaConsumer(
        "orders", bootstrap_servers=cluster.bootstrap_servers, group_id="kp", auto_offset_reset="earliest"
    )
    try:
        first(lambda: consumer.poll(1000))
        raise ZeroDivisionError
    except ZeroDivisionError:
        consumer.close()
    assert committed(cluster, "kp") == 3


def test_kclient_commits_neither(cluster: EmbeddedCluster) -> None:
    settings = {"bootstrap_servers": cluster.bootstrap_servers, "auto_offset_reset": "earliest"}
    consumer = Consumer("orders", group_id="ours", auto_commit_interval_ms=100, **settings)
    try:
        for record in consumer:
            if record.offset == 1:
                raise ZeroDivisionError
    except ZeroDivisionError:
        consumer.close()
    assert committed(cluster, "ours") == 1


def test_who_jumps_from_a_position_that_is_out_of_range(cluster: EmbeddedCluster) -> None:
    there = kafka_python.KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers)
    there.assign([kafka_python.TopicPartition("orders", 0)])
    there.seek(kafka_python.TopicPartition("orders", 0), 100)
    assert there.poll(1000) == {}
    assert there.position(kafka_python.TopicPartition("orders", 0)) == 3
    there.close()

    async def aio() -> int:
        async with aiokafka.AIOKafkaConsumer(bootstrap_servers=cluster.bootstrap_servers) as consumer:
            consumer.assign([aiokafka.TopicPartition("orders", 0)])
            consumer.seek(aiokafka.TopicPartition("orders", 0), 100)
            assert await consumer.getmany(timeout_ms=1000) == {}
            return int(await consumer.position(aiokafka.TopicPartition("orders", 0)))

    assert asyncio.run(aio()) == 3
    with Consumer(bootstrap_servers=cluster.bootstrap_servers) as consumer:
        consumer.assign([ORDERS])
        consumer.seek(ORDERS, 100)
        with pytest.raises(OffsetOutOfRangeError):
            consumer.poll(5.0)


def test_what_a_closed_port_is(cluster: EmbeddedCluster) -> None:
    del cluster
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": "localhost:1", "group.id": "g", "log_level": 0, "error_cb": lambda _: None}
    )
    consumer.subscribe(["orders"])
    assert consumer.poll(1.0) is None
    consumer.close()
    begin = time.monotonic()
    with (
        Consumer("orders", bootstrap_servers="localhost:1", group_id="g") as ours,
        pytest.raises(PortClosedError),
    ):
        ours.poll(10.0)
    assert time.monotonic() - begin < 8


def test_a_missing_topic_is_a_message_that_is_an_error(cluster: EmbeddedCluster) -> None:
    consumer = confluent(cluster, "ck-missing", **{"allow.auto.create.topics": False})
    consumer.subscribe(["odrers"])
    message = first(lambda: consumer.poll(1.0))
    assert message.error().code() == confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART
    consumer.close()

"""The same polls of the same log as Java's consumer: the same names, and the same values but for times."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.metrics import MetricValues
from localkafka import KafkaCluster, unavailable
from tests.kafka.other_clients import producer
from tests.metrics.java_table import TOPIC, Row, fill, printed, printed_of, table

Values = dict[tuple[str, ...], float]  # by group, name and tags

OURS = (
    "consumer-metrics",
    "consumer-node-metrics",
    "consumer-coordinator-metrics",
    "consumer-fetch-manager-metrics",
)
NOT_HERE = ("io-", "select-", "authentication", "reauthentication")
"""Java's own loop over its sockets, and authentication: kclient does not count these."""


async def read_with_kclient(bootstrap_servers: str, topic: str, group_id: str) -> MetricValues:
    """What the Java program does, and the metrics at its end."""
    keys: dict[str, Any] = {"client_id": "table", "auto_offset_reset": "earliest", "max_poll_records": 3}
    async with AsyncConsumer(
        topic, bootstrap_servers=bootstrap_servers, group_id=group_id, enable_auto_commit=False, **keys
    ) as consumer:
        count = 0
        while count < 10:
            count += len(await consumer.poll(5))
        await consumer.commit()
        return consumer.metrics()


def of_kclient() -> MetricValues:
    async def scenario() -> MetricValues:
        async with EmbeddedCluster(
            brokers=1, topics={TOPIC: 2}, config={"group.initial.rebalance.delay.ms": 0}
        ) as cluster:
            fill(cluster)
            return await read_with_kclient(cluster.bootstrap_servers, TOPIC, "kclient")

    return asyncio.run(asyncio.wait_for(scenario(), 60))


def determined(rows: list[Row], metrics: MetricValues) -> tuple[Values, Values]:
    """What Java's run determines, and kclient's values under the same names."""
    ours = {
        (name.group, name.name, ",".join(f"{key}={value}" for key, value in name.tags)): value
        for name, value in metrics.items()
    }
    javas = {(group, name, tags): float(value) for group, name, tags, value in rows if value != "-"}
    return javas, {key: ours[key] for key in javas}


def rows_of(metrics: MetricValues) -> set[tuple[str, str, str]]:
    return {
        (
            name.group,
            name.name,
            ",".join("node-id=" if key == "node-id" else f"{key}={value}" for key, value in name.tags),
        )
        for name in metrics
        if name.group in OURS
    }


@pytest.mark.spec("B.19.1")
def test_every_name_with_its_tags_is_javas_and_few_of_javas_are_missing() -> None:
    javas = {row[:3] for row in table()}
    ours = rows_of(of_kclient())
    assert ours - javas == set()
    missing = {name for _, name, _ in javas - ours}
    assert {name for name in missing if not any(part in name for part in NOT_HERE)} == set()
    assert {name.split("-")[0] for name in missing} <= {
        "io",
        "select",
        "failed",
        "successful",
        "reauthentication",
    }


@pytest.mark.spec("B.19.1", "S2-27", "S2-51")
def test_lag_lead_sizes_and_totals_are_those_that_java_has_after_the_same_polls() -> None:
    javas, ours = determined(table(), of_kclient())
    assert len(javas) > 30
    assert ours == javas


@pytest.mark.spec("B.19.1", "S2-27", "S2-51")
@pytest.mark.timeout(180)
def test_on_a_real_kafka_both_come_to_the_same_numbers(kafka1: KafkaCluster, fresh_name: str) -> None:
    kafka1.create_topic(fresh_name, 2)
    written = producer(kafka1, linger_ms=0)
    for partition in (0, 1):
        for _ in range(5):
            written.produce(fresh_name, b"x" * 100, partition=partition)
    written.flush(30)
    rows = printed_of(kafka1.bootstrap_servers, fresh_name)
    metrics = asyncio.run(read_with_kclient(kafka1.bootstrap_servers, fresh_name, f"{fresh_name}-kclient"))
    javas, ours = determined(rows, metrics)
    assert len(javas) > 30
    assert ours == javas


@pytest.mark.kafka
@pytest.mark.timeout(180)
def test_the_stored_table_is_what_java_prints() -> None:
    if reason := unavailable("4.3.1"):
        if os.environ.get("CI") == "true":
            pytest.fail(f"Java's consumer must run in CI: {reason}", pytrace=False)
        pytest.skip(f"no Kafka 4.3.1: {reason}")
    rows: list[Row] = printed()
    assert rows == table()

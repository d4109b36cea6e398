"""Java's copier of messages, in transactions of which it aborts some at random: every message arrives once.

On 4.3 it speaks transactions V2 (KIP-890), on 2.8 it adds partitions and groups itself.
"""

from __future__ import annotations

import os

import pytest

from kclient import Consumer, TopicPartition
from kclient.embedded import EmbeddedCluster
from localkafka import unavailable
from tests.embedded.test_java_clients import run

MESSAGES = 400
SECONDS = 20.0
COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"


@pytest.mark.kafka
@pytest.mark.timeout(240)
@pytest.mark.parametrize("group_mode", [True, False], ids=["group", "assigned"])
@pytest.mark.parametrize("release", ["4.3", "2.8"])
def test_a_copy_in_transactions_has_each_message_once(release: str, group_mode: bool) -> None:
    if reason := unavailable("4.3.1"):
        assert os.environ.get("CI") != "true", f"Java's clients must run in CI: {reason}"
        pytest.skip(f"no Kafka 4.3.1: {reason}")
    values = [b"%d" % number for number in range(MESSAGES)]
    with EmbeddedCluster(brokers=3, release=release, topics={"in": 1, "out": 1}) as cluster:
        cluster.produce("in", values)
        run(
            COPIER,
            *("--broker-list", cluster.bootstrap_servers, "--input-topic", "in", "--input-partition", "0"),
            *("--output-topic", "out", "--max-messages", str(MESSAGES), "--consumer-group", "copier"),
            *("--transaction-size", "37", "--transactional-id", "copier", "--enable-random-aborts"),
            *(["--group-mode", "--use-group-metadata"] if group_mode else []),
        )
        assert read(cluster, MESSAGES) == values
        assert cluster.committed("copier") == {TopicPartition("in", 0): MESSAGES}
        asked = [one.api for one in cluster.requests]
        assert ("AddPartitionsToTxn" in asked) is (release == "2.8")
        assert ("AddOffsetsToTxn" in asked) is (release == "2.8")
        assert "TxnOffsetCommit" in asked


def read(cluster: EmbeddedCluster, count: int) -> list[bytes | None]:
    with Consumer(
        bootstrap_servers=cluster.bootstrap_servers,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        consumer.assign([TopicPartition("out", 0)])
        found: list[bytes | None] = []
        while len(found) < count:
            records = consumer.poll(SECONDS)
            assert records, f"{count - len(found)} are missing"
            found += [record.value for record in records]
        return found + [record.value for record in consumer.poll(0.1)]

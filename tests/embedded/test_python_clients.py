"""Other clients in Python on the embedded cluster: kafka-python and aiokafka, in groups, in transactions, as admins.

kafka-python runs in a process of its own, for it leaves sockets to the garbage collector, which this run takes amiss.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from kclient.embedded import EmbeddedCluster

SECONDS = 20
VALUES = [b"value-%d" % number for number in range(300)]

GROUP = """
import json, sys
from kafka import KafkaConsumer, KafkaProducer

servers, values = sys.argv[1], sys.argv[2].split()
producer = KafkaProducer(bootstrap_servers=servers, compression_type="gzip", acks="all")
for value in values:
    producer.send("orders", value.encode())
producer.flush(20)
producer.close()
consumer = KafkaConsumer("orders", bootstrap_servers=servers, group_id="billing", auto_offset_reset="earliest")
found = []
while len(found) < len(values):
    for records in consumer.poll(timeout_ms=500).values():
        found += [record.value.decode() for record in records]
consumer.commit()
consumer.close()
print(json.dumps(found))
"""

ADMIN = """
import json, sys
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

admin = KafkaAdminClient(bootstrap_servers=sys.argv[1])
admin.create_topics([NewTopic("more", 2, 3)])
listed = sorted(admin.list_topics())
(described,) = admin.describe_topics(["more"])
admin.delete_topics(["more"])
admin.close()
print(json.dumps([listed, [len(partition["isr_nodes"]) for partition in described["partitions"]]]))
"""


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3, topics={"orders": 6}) as cluster:
        yield cluster


def kafka_python(program: str, *arguments: str) -> Any:
    """What a program on kafka-python printed as JSON."""
    command = [sys.executable, "-W", "ignore", "-c", program, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_kafka_python_writes_and_reads_in_a_group(cluster: EmbeddedCluster) -> None:
    words = [value.decode() for value in VALUES]
    found = kafka_python(GROUP, cluster.bootstrap_servers, " ".join(words))
    assert sorted(found) == sorted(words)
    assert sum(cluster.committed("billing").values()) == len(VALUES)


def test_kafka_python_administers(cluster: EmbeddedCluster) -> None:
    assert kafka_python(ADMIN, cluster.bootstrap_servers) == [["more", "orders"], [3, 3]]
    assert list(cluster.state.topics) == ["orders"]


def test_aiokafka_writes_and_reads_in_a_group(cluster: EmbeddedCluster) -> None:
    servers = cluster.bootstrap_servers

    async def main() -> list[bytes]:
        settings = {"compression_type": "lz4", "enable_idempotence": True}
        async with AIOKafkaProducer(bootstrap_servers=servers, **settings) as producer:
            for value in VALUES:
                await producer.send("orders", value)
            await producer.flush()
        found: list[bytes] = []
        group = {"group_id": "billing", "auto_offset_reset": "earliest"}
        async with (
            AIOKafkaConsumer("orders", bootstrap_servers=servers, **group) as consumer,
            asyncio.timeout(SECONDS),
        ):
            while len(found) < len(VALUES):
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    found += [record.value for record in records]
            await consumer.commit()
        return found

    assert sorted(asyncio.run(main())) == sorted(VALUES)
    assert sum(cluster.committed("billing").values()) == len(VALUES)


def test_transactions_of_aiokafka_are_seen_whole_or_not_at_all(cluster: EmbeddedCluster) -> None:
    servers = cluster.bootstrap_servers

    async def main() -> list[bytes]:
        async with AIOKafkaProducer(bootstrap_servers=servers, transactional_id="payments") as producer:
            for number in range(4):
                await producer.begin_transaction()
                await producer.send_and_wait("orders", b"%d" % number, partition=0)
                await (producer.abort_transaction() if number % 2 else producer.commit_transaction())
        settings = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
        async with (
            AIOKafkaConsumer("orders", bootstrap_servers=servers, **settings) as consumer,
            asyncio.timeout(SECONDS),
        ):
            return [(await consumer.getone()).value for _ in range(2)]

    assert asyncio.run(main()) == [b"0", b"2"]

"""A consumer on uvloop, on which uvicorn runs where it is installed: another event loop, with transports of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient import AsyncConsumer, Consumer, TopicPartition
from kclient.embedded import EmbeddedCluster, Listener
from tests.security.certificates import Authority

uvloop = pytest.importorskip("uvloop", reason="uvloop does not run here", exc_type=ImportError)

AUTHORITY = Authority()
COUNT = 30_000  # records of 100 bytes: responses that come in many pieces
P0 = TopicPartition("flights", 0)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    context = AUTHORITY.issue("localhost", "127.0.0.1").server_context(tmp_path)
    with EmbeddedCluster(topics={"flights": 1}, listeners=[Listener("SSL", ssl=context)]) as kafka:
        kafka.produce("flights", [b"x" * 100] * COUNT, partition=0)
        yield kafka


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_member_reads_commits_and_leaves(cluster: EmbeddedCluster, protocol: str) -> None:
    settings = {"ssl_truststore_certificates": AUTHORITY.pem} if protocol == "SSL" else {}
    settings |= {"bootstrap_servers": cluster.servers(protocol), "security_protocol": protocol}

    async def read() -> int:
        count = 0
        async with AsyncConsumer(
            "flights", group_id="g", config=settings, auto_offset_reset="earliest"
        ) as consumer:
            async for record in consumer:
                count += len(record.value) // 100
                if count == COUNT:
                    break
            await consumer.commit()
        return count

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(asyncio.wait_for(read(), 30)) == COUNT
    with Consumer(group_id="g", bootstrap_servers=cluster.bootstrap_servers) as consumer:
        assert consumer.committed([P0])[P0].offset == COUNT
        consumer.assign([P0])  # refused while the group has a member
        consumer.commit({P0: COUNT})

"""The markers of the embedded cluster, byte for byte those that Java writes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.embedded.log import Log
from kclient.embedded.transactions.coordinator import transactions_of
from kclient.embedded.transactions.records import write_markers
from kclient.embedded.transactions.transaction import TransactionMetadata, TransactionState
from kclient.records.batch import read_batches
from kclient.types import TopicPartition
from tests.embedded.raw_client import RawClient
from tests.embedded.raw_producer import RawProducer, settled
from tests.records.support import columns_of, golden_cases

T0 = TopicPartition("t", 0)


def markers() -> list[Any]:
    """Java's control batches that end a transaction, each alone."""
    found = []
    for case in golden_cases():
        data = bytes.fromhex(case["hex"])
        for batch, row in zip(read_batches(data), case["batches"], strict=False):
            kinds = [record.get("control", {}).get("type") for record in row.get("records", [])]
            if row.get("control") and kinds in (["COMMIT"], ["ABORT"]):
                found.append(
                    pytest.param(data[batch.start : batch.end], row, id=f"{case['case']}-{batch.start}")
                )
    return found


@pytest.mark.spec("B.11.3")
@pytest.mark.parametrize(("java", "row"), markers())
def test_a_marker_is_javas(java: bytes, row: dict[str, Any]) -> None:
    """Offset and leader epoch are the log's; timestamp, producer and the coordinator's epoch are given."""
    (control,) = [record["control"] for record in row["records"]]

    async def main() -> bytes:
        async with EmbeddedCluster(topics={"t": 1}) as cluster:
            state = cluster.state
            state.runtime.wall_clock = lambda: row["max_timestamp"] / 1000 + 1e-6
            (partition,) = state.topics["t"].partitions
            partition.log = Log()
            partition.log.end = row["base_offset"]
            partition.leader_epoch = row["partition_leader_epoch"]
            transaction = TransactionMetadata(
                "a", row["producer_id"], 1000, epoch=row["producer_epoch"], partitions=[T0]
            )
            transaction.state = (
                TransactionState.PREPARE_COMMIT
                if control["type"] == "COMMIT"
                else TransactionState.PREPARE_ABORT
            )
            assert write_markers(state, transaction, control["coordinator_epoch"])
            return partition.log.batches[-1].data

    assert asyncio.run(main()).hex() == java.hex()


def test_java_wrote_both_kinds() -> None:
    kinds = [param.values[1]["records"][0]["control"]["type"] for param in markers()]  # type: ignore[index]
    assert kinds.count("COMMIT") > 3
    assert kinds.count("ABORT") > 3


def test_the_coordinators_epoch_is_in_the_marker() -> None:
    async def main() -> list[int]:
        async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster, RawClient(cluster) as raw_client:
            producer = RawProducer(cluster, raw_client, "a")
            await producer.init()
            for _ in range(3):
                await producer.transact(T0, b"1", commit=True)
                await settled(cluster)
                number = (
                    transactions_of(cluster.state.brokers[await producer.coordinator()]).check("a").number
                )
                cluster.move_leader("__transaction_state", number)
            (partition,) = cluster.state.topics["t"].partitions
            headers = [stored.header for stored in partition.log.batches if stored.header.is_control]
            values = [columns_of(header)[0].raw_values()[0] or b"" for header in headers]
            return [int.from_bytes(value[2:6], "big") for value in values]

    assert asyncio.run(main()) == [0, 1, 2]


def test_a_partition_that_is_gone_needs_no_marker() -> None:
    async def main() -> None:
        async with EmbeddedCluster(topics={"t": 1, "other": 1}) as cluster, RawClient(cluster) as raw_client:
            cluster.delay_markers(1000)
            producer = RawProducer(cluster, raw_client, "a")
            await producer.init()
            await producer.begin_write(T0, b"1")
            await producer.begin_write(TopicPartition("other", 0), b"2")
            assert await producer.end(commit=True) == 0
            cluster.delete_topic("t")
            cluster.state.clock.advance(1.0)
            await settled(cluster)
            (partition,) = cluster.state.topics["other"].partitions
            assert partition.log.batches[-1].header.is_control
            assert await producer.init() == 0

    asyncio.run(main())

"""What the suite runs against: a broker's address, its release, and the few things a test needs before it asks.

Nothing here depends on which kind of broker it is, `restart` excepted.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

from kclient.embedded.releases import Release, versions_of
from kclient.generated.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kclient.generated.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kclient.generated.find_coordinator_request import FindCoordinatorRequest
from kclient.generated.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kclient.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from kclient.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.protocol import errors
from kclient.protocol.message import Message
from kclient.protocol.registry import MESSAGES
from kclient.records.writer import NewRecord, build_batch
from tests.conformance.raw_client import RawClient

# What every target is started with, besides quick rebalances: limits that a test can reach. The tests write records of
# 2020; with the default retention, the round that brokers make every five minutes would delete them amid a test.
# Tests of one target may be more than ten minutes apart, the default limit of an idle connection.
SETTINGS = {
    "log.retention.ms": -1,
    "connections.max.idle.ms": 3_600_000,
    "auto.create.topics.enable": False,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "group.max.size": 3,
    "offsets.topic.num.partitions": 5,
    "transaction.state.log.num.partitions": 3,
}
# Real brokers look only so often for transactions that last too long.
SETTINGS_OF_REAL_ONES = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 500}
SETTINGS_OF_4 = {
    "group.consumer.max.size": 3,
    "group.consumer.heartbeat.interval.ms": 1000,
    "group.consumer.assignment.interval.ms": 0,
}

SECONDS = 20.0
POLL_SECONDS = 0.02
SPARE_TOPICS = 20
OLDEST_PRODUCE = 3  # brokers of 4.x list 0, but answer from here

_numbers = itertools.count()


def offered(release: Release, api: str) -> range:
    """The versions of an API that a broker of this release answers and our schemas have; empty for none."""
    api_key = MESSAGES[f"{api}Request"].api_key
    assert api_key is not None
    oldest, newest = versions_of(release).get(api_key, (0, -1))
    if api == "Produce":
        oldest = OLDEST_PRODUCE
    return range(oldest, newest + 1)


def eventually(response: Callable[[], Any], good: Callable[[Any], bool]) -> Any:
    """Ask until the response is good. Fails with the last response after 20 s."""
    deadline = time.monotonic() + SECONDS
    while not good(found := response()):
        assert time.monotonic() < deadline, found
        time.sleep(POLL_SECONDS)
    return found


class Target:
    """One running broker, node 1 of a cluster of one."""

    def __init__(self, release: str, address: str, restart: Callable[[], None], embedded: bool) -> None:
        host, port = address.rsplit(":", 1)
        self.release = Release.parse(release)
        self.host, self.port = host, int(port)
        self.embedded = embedded
        self._restart = restart
        self._asker: RawClient | None = None
        self._spare: list[str] = []

    def since(self, release: str) -> bool:
        """Whether the broker is of this release or newer."""
        return self.release >= Release.parse(release)

    def newest(self, api: str) -> int:
        """The newest version of an API that both sides have."""
        return offered(self.release, api)[-1]

    # --- asking

    def connect(self, client_id: str | None = "asker") -> RawClient:
        """A new connection."""
        return RawClient(self.host, self.port, client_id)

    def ask(self, request: Message, version: int | None = None) -> Any:
        """One question and its response on a connection of the target's own, in the newest version unless given."""
        if version is None:
            version = self.newest(request.NAME.removesuffix("Request"))
        if self._asker is None:
            self._asker = self.connect()
        try:
            return self._asker.ask(request, version)
        except OSError:
            self.close()  # a response that comes late must not be taken for the next one
            raise

    def restart(self) -> None:
        """End the broker and start it again on its data: leader epochs grow, connections are gone."""
        self.close()
        self._spare.clear()  # their leader epoch is no longer that of a new topic
        self._restart()

    def close(self) -> None:
        """Leave the connection."""
        if self._asker is not None:
            self._asker.__exit__()
        self._asker = None

    # --- topics and records

    def topic(self, partitions: int = 1, **configs: str | int) -> str:
        """A new topic whose partitions have leaders; `retention_ms=-1` stands for `retention.ms`."""
        if partitions > 1 or configs:
            return self._make([fresh("topic")], partitions, configs)[0]
        if not self._spare:  # most tests want such a one, and many are made as fast as one
            self._spare = self._make([fresh("topic") for _ in range(SPARE_TOPICS)], 1, {})
        return self._spare.pop()

    def _make(self, names: list[str], partitions: int, configs: dict[str, str | int]) -> list[str]:
        rows = [
            CreatableTopicConfig(name=key.replace("_", "."), value=str(value))
            for key, value in configs.items()
        ]
        made = [
            CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=rows)
            for name in names
        ]
        response = self.ask(CreateTopicsRequest(topics=made, timeout_ms=10_000))
        assert not any(row.error_code for row in response.topics), response
        for name in names:
            eventually(lambda: self.metadata(name), lambda topic: led(topic) == partitions)  # noqa: B023
        eventually(lambda: self._ends(names, partitions), lambda codes: set(codes) == {errors.NONE})
        return names

    def _ends(self, topics: list[str], partitions: int) -> list[int]:
        """The codes that ListOffsets has for each partition: a leader may be elected before it knows."""
        rows = [ListOffsetsPartition(partition_index=number, timestamp=-1) for number in range(partitions)]
        asked = [ListOffsetsTopic(name=topic, partitions=rows) for topic in topics]
        response = self.ask(ListOffsetsRequest(replica_id=-1, topics=asked), 1)
        return [row.error_code for topic in response.topics for row in topic.partitions]

    def metadata(self, name: str) -> Any:
        """What Metadata says of one topic."""
        return self.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)])).topics[0]

    def topic_id(self, name: str) -> bytes:
        """The id of a topic, for versions that name it so."""
        return bytes(self.metadata(name).topic_id)

    def produce(
        self, topic: str, *values: bytes, partition: int = 0, timestamps: list[int] | None = None
    ) -> int:
        """Append one batch and give its first offset."""
        stamps = timestamps or [1_600_000_000_000] * len(values)
        rows = [NewRecord(value=value, timestamp=at) for value, at in zip(values, stamps, strict=True)]
        return self.append(topic, build_batch(rows), partition)

    def append(self, topic: str, batch: bytes, partition: int = 0) -> int:
        """Append bytes as they are and give their first offset."""
        data = PartitionProduceData(index=partition, records=batch)
        request = ProduceRequest(
            acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
        )
        [row] = self.ask(request, min(9, self.newest("Produce"))).responses[0].partition_responses
        assert row.error_code == errors.NONE, row
        return int(row.base_offset)

    def delete_records(self, topic: str, offset: int) -> None:
        """Move the log start of partition 0."""
        rows = [
            DeleteRecordsTopic(
                name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)]
            )
        ]
        [response] = self.ask(DeleteRecordsRequest(topics=rows, timeout_ms=10_000)).topics
        assert [(row.error_code, row.low_watermark) for row in response.partitions] == [(errors.NONE, offset)]

    # --- coordinators

    def coordinated(self, key: str, key_type: int = 0) -> str:
        """The same key, once its coordinator answers FindCoordinator."""
        eventually(
            lambda: self.ask(FindCoordinatorRequest(key=key, key_type=key_type), 1),
            lambda response: response.error_code == errors.NONE,
        )
        return key


def fresh(word: str) -> str:
    """A name that nothing else in this run has."""
    return f"{word}-{next(_numbers)}"


def led(topic: Any) -> int:
    """How many partitions of a topic in a Metadata response have a leader."""
    return sum(row.error_code == errors.NONE and row.leader_id >= 0 for row in topic.partitions)

"""What several clients do to `__consumer_offsets`, for tests that read it.

python -m tests.kafka.offsets_activity 4.3.1 FILE      writes the golden file of a release for tests/group/data
"""

from __future__ import annotations

import gzip
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import attrs
import confluent_kafka
from confluent_kafka.admin import AdminClient

from kclient import Consumer, OffsetAndMetadata, TopicPartition, group
from kclient.group.offsets_topic import OffsetsRecord, UnknownOffsetsRecord
from localkafka import KafkaCluster, command_line
from localkafka.settings import OFFSETS_PARTITIONS

SECONDS = 30
TOPIC = "__consumer_offsets"

Pair = tuple[bytes | None, bytes | None]


@attrs.define
class Activity:
    """The groups by what they are, each named so that all share one partition, and the topic that they read."""

    kafka: KafkaCluster
    topic: str
    prefix: str
    names: dict[str, str] = attrs.Factory(dict)

    @property
    def servers(self) -> str:
        return self.kafka.bootstrap_servers

    @property
    def partition(self) -> int:
        return group.offsets_topic_partition(f"{self.prefix}-0", OFFSETS_PARTITIONS)

    def name(self, what: str) -> str:
        """A name for the group of that kind, in the partition of all."""
        if what not in self.names:
            wanted = (f"{self.prefix}-{what}-{number}" for number in count())
            fits = (
                one
                for one in wanted
                if group.offsets_topic_partition(one, OFFSETS_PARTITIONS) == self.partition
            )
            self.names[what] = next(fits)
        return self.names[what]

    # --- members

    @contextmanager
    def librdkafka(self, what: str, subscribe: str | None = None, **settings: str) -> Iterator[None]:
        """A member of confluent-kafka that has committed."""
        dotted = {key.replace("_", "."): value for key, value in settings.items()}
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": self.name(what),
                "client.id": what,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                **dotted,
            }
        )
        consumer.subscribe([subscribe or self.topic])
        try:
            until(lambda: consumer.poll(0.1) is not None and len(consumer.assignment()) == 2)
            offset = confluent_kafka.TopicPartition(self.topic, 0, 3, metadata="from librdkafka")
            consumer.commit(offsets=[offset], asynchronous=False)
            yield
        finally:
            consumer.close()

    @contextmanager
    def python(self, what: str) -> Iterator[None]:
        """A member of kafka-python that has committed."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # its own, while it is imported
            from kafka import KafkaConsumer
        consumer = KafkaConsumer(
            bootstrap_servers=self.servers,
            group_id=self.name(what),
            client_id=what,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        try:
            # If it joins before it has metadata of the topic, it may assign nothing and stay there for five minutes.
            until(lambda: bool(consumer.partitions_for_topic(self.topic)))
            consumer.subscribe([self.topic])
            until(lambda: bool(consumer.poll(100)))
            consumer.commit()
            yield
        finally:
            consumer.close()

    @contextmanager
    def ours(self, what: str, **settings: Any) -> Iterator[None]:
        """A member of kclient that has committed."""
        base = {"bootstrap_servers": self.servers, "auto_offset_reset": "earliest", "client_id": what}
        with Consumer(self.topic, group_id=self.name(what), **base, **settings) as consumer:
            until(lambda: len(consumer.poll(0.1)) > 0)
            consumer.commit({TopicPartition(self.topic, 1): OffsetAndMetadata(2, 0, "from kclient")})
            yield

    # --- without members

    def transactions(self, what: str) -> None:
        """One commit in a transaction that is committed, and one in a transaction that is aborted."""
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self.servers, "transactional.id": self.name(what), "log_level": 0}
        )
        reader = confluent_kafka.Consumer({"bootstrap.servers": self.servers, "group.id": self.name(what)})
        metadata = reader.consumer_group_metadata()
        producer.init_transactions(SECONDS)
        for offset, end in ((1, producer.commit_transaction), (4, producer.abort_transaction)):
            producer.begin_transaction()
            offsets = [confluent_kafka.TopicPartition(self.topic, 0, offset)]
            producer.send_offsets_to_transaction(offsets, metadata, SECONDS)
            end(SECONDS)
            # Coordinators before 4.0 write the marker in the log, and apply it to their cache later, on another thread.
            # What the next transaction of this producer commits before that is applied with it (2.8.2 answered 4).
            # With require_stable (KIP-447) OffsetFetch answers once it is applied.
            reader.committed(offsets, SECONDS)
        reader.close()

    def delete(self, what: str) -> None:
        """Delete a group: tombstones for it and its commits."""
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        for deleted in admin.delete_consumer_groups([self.name(what)]).values():
            deleted.result(timeout=SECONDS)

    # --- reading

    def read(self) -> list[Pair]:
        """Keys and values of the partition, read with kclient, without what was aborted."""
        tp = TopicPartition(TOPIC, self.partition)
        settings: dict[str, Any] = {
            "bootstrap_servers": self.servers,
            "auto_offset_reset": "earliest",
            "isolation_level": "read_committed",
            "exclude_internal_topics": False,
        }
        with Consumer(**settings) as consumer:
            consumer.assign([tp])
            end = consumer.end_offsets([tp])[tp]
            found: list[Pair] = []
            while consumer.position(tp) < end:
                found += [(record.key, record.value) for record in consumer.poll(1.0)]
        return found

    def mine(self, pairs: list[Pair]) -> list[OffsetsRecord]:
        """The records of these groups. Every record must be known."""
        records = [group.read_offsets_record(*pair) for pair in pairs]
        assert not [one for one in records if isinstance(one, UnknownOffsetsRecord)]
        return [
            one for one in records if isinstance(one, OffsetsRecord) and one.group_id in self.names.values()
        ]

    def formatted(self, formatter: str, records: int) -> list[Any]:
        """What Kafka's own formatter prints of these groups, among the first `records` of the partition."""
        printed = command_line.format_records(self.servers, TOPIC, self.partition, formatter, records)
        return [one for one in printed if one["key"]["data"]["group"] in self.names.values()]


def members(activity: Activity, *, newer: bool) -> ExitStack:
    """All members at once; `newer` adds those of KIP-848, the last one with a regular expression."""
    with ExitStack() as stack:
        enter: Callable[[Any], Any] = stack.enter_context
        enter(activity.librdkafka("range", partition_assignment_strategy="range"))
        enter(activity.librdkafka("cooperative", partition_assignment_strategy="cooperative-sticky"))
        enter(activity.librdkafka("static", group_instance_id="first"))
        enter(activity.python("python"))
        enter(activity.ours("ours"))
        if newer:
            enter(activity.librdkafka("newer", group_protocol="consumer"))
            enter(activity.librdkafka("regex", f"^{activity.topic}$", group_protocol="consumer"))
        activity.transactions("transactional")
        return stack.pop_all()


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not reached():
        assert time.monotonic() < deadline


def as_text(pair: Pair) -> Mapping[str, str | None]:
    """A record for a golden file."""
    key, value = pair
    return {
        "key": key.hex() if key is not None else None,
        "value": value.hex() if value is not None else None,
    }


def write_golden(version: str, file: Path) -> None:
    """Let everything happen on a fresh cluster, and keep the bytes with what Kafka's formatters print of them."""
    with KafkaCluster(version, 1) as kafka:
        kafka.create_topic("orders", 2)
        activity = Activity(kafka, "orders", "golden")
        producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap_servers})
        for number in range(10):
            producer.produce("orders", b"x", partition=number % 2)
        assert producer.flush(SECONDS) == 0
        with members(activity, newer=version >= "4"):
            pass
        activity.delete("ours")
        pairs = activity.read()
        types = [one.record_type for one in activity.mine(pairs)]
        commits = iter(activity.formatted(command_line.COMMITS, len(pairs)))
        groups = iter(activity.formatted(command_line.GROUPS, len(pairs)))
        with gzip.open(file, "wt", encoding="ascii") as lines:
            for pair, kind in zip(pairs, types, strict=True):
                by_java = next(commits) if kind == 1 else next(groups) if kind == 2 else None
                lines.write(json.dumps({**as_text(pair), "json": by_java}) + "\n")


if __name__ == "__main__":
    write_golden(sys.argv[1], Path(sys.argv[2]))

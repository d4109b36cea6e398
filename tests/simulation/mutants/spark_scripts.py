"""Short scripts about the reader for Spark, without Spark: its stream and its ranges, on the embedded cluster.

Sockets and time are real, so the seed decides only what there is to read and how it is cut.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs

from kclient.embedded import EmbeddedCluster
from kclient.errors import DataLossError
from kclient.spark import offsets
from kclient.spark.executor import clients, read_range
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import OffsetRange
from kclient.spark.stream import Stream
from kclient.types import TopicPartition
from tests.simulation.mutants.table import Symptoms

TOPIC: Final = "events"
GROUP: Final = "lake"
PARTITIONS: Final = 12  # two digits: the order of numbers is not that of texts
BATCHES: Final = 3


def every_record_once(seed: int) -> Symptoms:
    """The micro-batches of a stream are together what the topic holds, and one that runs again is the same. I-21."""
    draw = random.Random(seed)
    with _streaming(
        minPartitions=draw.randint(2, 40),
        maxRecordsPerPartition=draw.randint(3, 30),
        maxOffsetsPerTrigger=draw.randint(5, 200),
    ) as scene:
        wanted: list[tuple[int, int]] = []
        for _ in range(BATCHES):
            wanted += scene.produce(draw)
        read = [row for first in scene.drain() for row in first]
        if sorted(read) != sorted(wanted):
            missing, surplus = set(wanted) - set(read), len(read) - len(set(read))
            return [("I-21", f"{len(missing)} of {len(wanted)} records are missing, {surplus} came twice")]
    return []


def canonical_offsets(seed: int) -> Symptoms:
    """Offsets are written in one order, that of numbers, however they are given: Spark compares their text. I-21."""
    draw = random.Random(seed)
    numbers = list(range(PARTITIONS))
    wanted = json.dumps({TOPIC: {str(number): number for number in numbers}})
    draw.shuffle(numbers)
    written = offsets.dump_offsets({TopicPartition(TOPIC, number): number for number in numbers})
    return [] if written == wanted else [("I-21", f"written as {written}")]


def progress_of_group(seed: int) -> Symptoms:
    """The offsets that a batch has read are committed when the batch is done. I-21."""
    draw = random.Random(seed)
    with _streaming(**{"commit.group.id": GROUP}) as scene:
        scene.produce(draw)
        scene.drain()
        scene.stream.commit(scene.at)
        stored = scene.cluster.committed(GROUP)
        return [] if stored == scene.at else [("I-21", f"the group has {stored} where {scene.at} was read")]


def loss_is_told(seed: int) -> Symptoms:
    """Records that are gone end a query unless the user does without them. I-21."""
    draw = random.Random(seed)
    with _streaming() as scene:
        scene.produce(draw)
        scene.drain()
        for _ in range(2):
            scene.cluster.produce(TOPIC, [b"lost"] * 10, partition=3)
        scene.cluster.delete_records(TOPIC, 3, scene.at[TopicPartition(TOPIC, 3)] + 10)
        try:
            scene.drain()
        except DataLossError:
            return []
    return [("I-21", "10 records were deleted before they were read, and nothing told of it")]


@attrs.define
class _Scene:
    """A cluster, a stream of one topic, and where the stream is."""

    cluster: EmbeddedCluster
    options: SourceOptions
    stream: Stream
    at: dict[TopicPartition, int]

    def produce(self, draw: random.Random) -> list[tuple[int, int]]:
        """Some records into some partitions; where they are."""
        found: list[tuple[int, int]] = []
        for partition in draw.sample(range(PARTITIONS), 5):
            found += self.cluster.produce(TOPIC, [b"x"] * draw.randint(1, 60), partition=partition)
        return found

    def drain(self) -> Iterator[list[tuple[int, int]]]:
        """Micro-batches until nothing is left; each is run twice, as after a crash."""
        return iter([*self._drain()])

    def _drain(self) -> Iterator[list[tuple[int, int]]]:
        while (end := self._through_json(self.stream.latest(self.at, self.stream.limit))) != self.at:
            ranges = self.stream.ranges(self.at, end)
            rows = self._rows(ranges)
            again = self._rows(self.stream.ranges(self.at, end))
            yield rows if again == rows else []
            self.at = end

    def _rows(self, ranges: list[OffsetRange]) -> list[tuple[int, int]]:
        return [
            (row["partition"], row["offset"])
            for wanted in ranges
            for batch in read_range(wanted, self.options, ("partition", "offset"))
            for row in batch.to_pylist()
        ]

    @staticmethod
    def _through_json(given: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        return offsets.parse_offsets(offsets.dump_offsets(given))


@contextmanager
def _streaming(**extra: Any) -> Iterator[_Scene]:
    with EmbeddedCluster(1, topics={TOPIC: PARTITIONS}) as cluster:
        given = {
            "kafka.bootstrap.servers": cluster.bootstrap_servers,
            "subscribe": TOPIC,
            "startingOffsets": "earliest",
            "fetchOffset.numRetries": "0",
        }
        options = SourceOptions.parse(
            {**given, **{name: str(value) for name, value in extra.items()}}, "stream"
        )
        stream = Stream.open(options)
        try:
            yield _Scene(cluster, options, stream, stream.initial())
        finally:
            stream.close()
            clients.close()

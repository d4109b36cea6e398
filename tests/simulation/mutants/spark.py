"""Bugs of the reader for Spark, M-116…M-120. No simulation runs Spark: scripts drive what it would call."""

from __future__ import annotations

import json
from typing import Any

import attrs

from kclient.spark import offsets, ranges, stream
from kclient.spark.arrow_batches import Batcher
from kclient.spark.ranges import OffsetRange
from kclient.spark.stream import Stream
from tests.simulation.mutants import spark_scripts
from tests.simulation.mutants.table import Patch, mutant


@mutant("M-116", "I-21", look=spark_scripts.every_record_once)
def end_is_inclusive(patch: Patch) -> None:
    """Read the record at the end of a range too."""
    before = patch.put(Batcher, "batches", lambda self, reader, end: before(self, reader, end + 1))


@mutant("M-117", "I-21", look=spark_scripts.every_record_once)
def remainder_dropped(patch: Patch) -> None:
    """Cut a range into equal pieces, and forget what is left over."""

    def divide(piece: OffsetRange, parts: int) -> list[OffsetRange]:
        size = piece.size // min(parts, piece.size)
        starts = [piece.start + number * size for number in range(min(parts, piece.size))]
        return [attrs.evolve(piece, start=start, end=start + size) for start in starts]

    patch.put(ranges, "_divide", divide)


@mutant("M-118", "I-21", look=spark_scripts.canonical_offsets)
def sorted_as_text(patch: Patch) -> None:
    """Write partition 10 before partition 2."""

    def dump(given: Any) -> str:
        return json.dumps(json.loads(before(given)), sort_keys=True)

    before = patch.put(offsets, "dump_offsets", dump)


@mutant("M-119", "I-21", look=spark_scripts.progress_of_group)
def start_is_committed(patch: Patch) -> None:
    """Commit the offsets where the batch began."""

    def ranges(self: Stream, start: Any, end: Any) -> list[OffsetRange]:
        began[id(self)] = start
        return list(planned(self, start, end))

    began: dict[int, Any] = {}
    planned = patch.put(Stream, "ranges", ranges)
    commit = patch.put(Stream, "commit", lambda self, end: commit(self, began[id(self)]))


@mutant("M-120", "I-21", look=spark_scripts.loss_is_told)
def loss_ignored(patch: Patch) -> None:
    """Do without what is lost, whatever failOnDataLoss says."""
    before = patch.put(stream, "report", lambda losses, *, fail, fatal=(): before(losses, fail=False))

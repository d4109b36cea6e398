"""What a fetch costs until it is Arrow, record by record: CPU of one thread, without Spark and without a network.

    python -m benchmarks.bench_arrow [--quick]

A fetch holds batches of 16 kB or 1 MB, of records with a key of 8 bytes and a value of 100; their CRC is checked. It
becomes batches of 10,000 rows with the 7 columns of the Spark source, as its workers make them. `from lists` is the
other way to the same batches: a list of bytes objects for each column. Rounds alternate, and the best of each counts.

What Spark adds is measured by bench_spark. D of the Spark page is what is here and the work of the network.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import pyarrow as pa

from benchmarks.report import Figure, Goal, progress, show
from kclient.records.arrow import SCHEMA
from kclient.records.compression import Compression
from kclient.records.reader import PartitionReader
from kclient.records.writer import NewRecord, build_batch
from kclient.spark.arrow_batches import Batcher, default_columns

COLUMNS = default_columns(include_headers=False)
FETCHED_RECORDS = 40_000
ROWS, BYTES = 10_000, 4_194_304
ROUNDS, QUICK_ROUNDS = 15, 5
MICROSECONDS = Goal(most=2.5)

Make = Callable[[bytes], int]


def fetch(records_a_batch: int, codec: Compression, sizes: Sequence[int]) -> bytes:
    """Batches one after the other; the sizes of values are drawn from `sizes`."""
    draw = random.Random(1)
    return b"".join(
        build_batch(
            [
                NewRecord(b"%08d" % offset, b"v" * draw.choice(sizes), 1_700_000_000_000 + offset // 50)
                for offset in range(start, min(FETCHED_RECORDS, start + records_a_batch))
            ],
            base_offset=start,
            compression=codec,
        )
        for start in range(0, FETCHED_RECORDS, records_a_batch)
    )


def batches(data: bytes, columns: Sequence[str] = COLUMNS) -> int:
    reader = PartitionReader("t", 0, data, 0)
    return sum(batch.num_rows for batch in Batcher(columns, ROWS, BYTES).batches(reader, FETCHED_RECORDS))


def values_only(data: bytes) -> int:
    return batches(data, ("value",))


def without_bytes(data: bytes) -> int:
    return batches(data, ("partition", "offset"))


def from_lists(data: bytes) -> int:
    reader = PartitionReader("t", 0, data, 0)
    rows = 0
    while not reader.exhausted:
        runs = reader.take(ROWS).runs
        count = sum(map(len, runs))
        columns: dict[str, Sequence[object]] = {
            "key": [*chain.from_iterable(run.raw_keys() for run in runs)],
            "value": [*chain.from_iterable(run.raw_values() for run in runs)],
            "topic": ["t"] * count,
            "partition": [0] * count,
            "offset": [*chain.from_iterable(run.offsets for run in runs)],
            "timestamp": [time * 1000 for run in runs for time in run.timestamps],
            "timestampType": [*chain.from_iterable([int(run.timestamp_type)] * len(run) for run in runs)],
        }
        arrays = [pa.array(columns[name], SCHEMA.field(name).type) for name in COLUMNS]
        rows += pa.RecordBatch.from_arrays(arrays, names=COLUMNS).num_rows
    return rows


MAKERS: dict[str, Make] = {
    "to Arrow": batches,
    "to Arrow, value only": values_only,
    "to Arrow, partition and offset": without_bytes,
    "from lists": from_lists,
}
FETCHES: dict[str, tuple[int, Compression, Sequence[int]]] = {
    "1 MB": (8_000, Compression.NONE, (100,)),
    "1 MB lz4": (8_000, Compression.LZ4, (100,)),
    "16 kB lz4": (130, Compression.LZ4, (100,)),
    "1 MB, values of 50…150": (8_000, Compression.NONE, range(50, 151)),
}


def best_seconds(data: bytes, rounds: int) -> dict[str, float]:
    best = dict.fromkeys(MAKERS, float("inf"))
    for _ in range(rounds):
        for name, make in MAKERS.items():
            used = time.process_time()
            if make(data) != FETCHED_RECORDS:
                raise SystemExit(f"{name} lost records")
            best[name] = min(best[name], time.process_time() - used)
    return best


def measure(*, quick: bool = False) -> Iterator[Figure]:
    for what, kind in FETCHES.items():
        progress(f"a fetch of {what}")
        best = best_seconds(fetch(*kind), QUICK_ROUNDS if quick else ROUNDS)
        for name, seconds in best.items():
            goal = MICROSECONDS if name == "to Arrow" else None
            yield Figure(f"{what}: {name}", seconds / FETCHED_RECORDS * 1e6, "us/row", goal)
        yield Figure(f"{what}: from lists : to Arrow", best["from lists"] / best["to Arrow"], "x")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    show("a fetch made Arrow", measure(quick=parser.parse_args().quick))


if __name__ == "__main__":
    main()

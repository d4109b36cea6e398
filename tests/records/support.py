"""Shared by the tests of records: reading whole fields, and the golden batches that Java wrote."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from kclient.records.batch import Batch, read_batches
from kclient.records.columns import Columns
from kclient.records.reader import Chunk, PartitionReader
from kclient.records.records import Record, Records
from kclient.records.sections import columns_for, open_batch

GOLDEN = Path(__file__).parent / "data" / "record_batches.jsonl.gz"


def golden_cases() -> list[dict[str, Any]]:
    with gzip.open(GOLDEN, "rt", encoding="ascii") as lines:
        return [json.loads(line) for line in lines]


def columns_of(batch: Batch, block: int = 10**9, **options: Any) -> list[Columns]:
    """All records of a batch, control records included, in blocks of at most `block`."""
    section = open_batch(batch, **options)
    runs = []
    while not section.is_finished:
        columns = columns_for(section)
        section.read_into(columns, block)
        runs.append(columns)
    return runs


def take_all(reader: PartitionReader, at_once: int = 10**9) -> list[Chunk]:
    chunks = []
    while not reader.exhausted:
        chunks.append(reader.take(at_once))
    return chunks


def records_of(
    data: bytes, fetch_offset: int = 0, at_once: int = 10**9, **options: Any
) -> list[Record[Any, Any]]:
    return list(Records(take_all(PartitionReader("t", 0, data, fetch_offset, **options), at_once)))


def only_batch(data: bytes) -> Batch:
    (batch,) = read_batches(data)
    return batch

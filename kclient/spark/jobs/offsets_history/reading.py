"""The records of a range with what the columns of the source do not tell: whether a transaction wrote them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from kclient.errors import KclientError
from kclient.records.batch import read_batches
from kclient.records.reader import PartitionReader
from kclient.spark.ahead import Piece
from kclient.spark.fetching import RangeFetcher
from kclient.spark.jobs.offsets_history.rows import Entry
from kclient.spark.options import SourceOptions
from kclient.spark.plan import OffsetRange
from kclient.spark.worker import Client, clients

RECORDS: Final = 10_000


def entries(wanted: OffsetRange, options: SourceOptions) -> Iterator[Entry]:
    """Every record of the range that is committed, in order.

    Raises DeadlineError, DataLossError, CorruptDataError, ConnectError, AuthorizationError, BrokerError.
    """
    try:
        yield from _entries(clients.borrow(options, wanted.topic), wanted, options)
    except KclientError:
        clients.discard(options)
        raise


def _entries(client: Client, wanted: OffsetRange, options: SourceOptions) -> Iterator[Entry]:
    fetcher = RangeFetcher(client.cluster, client.config, client.runtime, wanted, options)
    try:
        while (piece := client.run(fetcher.next())) is not None:
            yield from _of_piece(piece, fetcher.reader(piece), wanted.partition, fetcher.end)
    finally:
        client.run(fetcher.close())


def _of_piece(piece: Piece, reader: PartitionReader, partition: int, end: int) -> Iterator[Entry]:
    spans = [
        (batch.base_offset, batch.is_transactional) for batch in read_batches(piece.data) if batch.magic == 2
    ]
    begins = [begin for begin, _ in spans]
    while not reader.exhausted and reader.next_offset < end:
        chunk = reader.take(RECORDS)
        chunk.cut_at(end)
        for run in chunk.runs:
            records = zip(run.offsets, run.timestamps, run.raw_keys(), run.raw_values(), strict=False)
            for offset, timestamp, key, value in records:
                at = bisect_right(begins, offset) - 1
                yield Entry(partition, offset, timestamp, at >= 0 and spans[at][1], key, value)

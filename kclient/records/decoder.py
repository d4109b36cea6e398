"""The seam for native code: what stands between the bytes of a batch's records and columns is one function.

    bytes of a Fetch ─▶ framing, CRC, decompression ─▶ decode ─▶ columns ─▶ record objects   poll()
                        (batch, compression)                             ─▶ Arrow            to_arrow(), Spark, Parquet

`decode` is the only thing that looks at a record byte by byte. Whoever replaces it, replaces it for all of them, here:
`PartitionReader` asks `decoder_in_use`, and nothing else in the client decodes records of format 2 that a user sees.
Formats 0 and 1 stay in Python (`legacy`), and so does what the embedded cluster reads, which is the judge of it.
"""

from __future__ import annotations

from typing import Final, Protocol

from kclient.records.columns import Columns
from kclient.records.pure import PureDecoder

MIN_RECORD_BYTES = 7


class Decoder(Protocol):
    """A kind of columns, and the function that fills them.

    `columns_type` is `Columns` or a subclass whose number columns are, say, arrays: 64 bits for offsets and timestamps,
    32 for the rest. It is made with (data, timestamp_type, leader_epoch), and `stamp`, `drop` and `split` must do what
    those of `Columns` do. Arrays of C's own numbers are copied to Arrow as a whole, lists number by number.

    Who owns what. `columns.data` is an immutable bytes object that the columns own: a decompressed section, or the
    whole records field of a Fetch. Keys and values are spans of it and are not copied. The numbers belong to the
    columns. A decoder keeps no reference to either behind the call, so one decoder serves all threads, and may let go
    of the GIL: nobody else has these columns meanwhile. Record objects and Arrow arrays own copies.

    `tests/records/test_decoders.py` holds every implementation to the same columns and the same refusals as a plain
    reading of the layout; `tests/records/test_seam.py` sees every path of a user's records go through here.
    """

    columns_type: type[Columns]

    def decode(
        self,
        columns: Columns,
        position: int,
        count: int,
        *,
        end: int,
        base_offset: int,
        base_timestamp: int,
        previous_delta: int,
        last_delta: int,
        max_headers: int,
    ) -> int:
        """Append `count` (≥ 1) records that begin at `position` of `columns.data`; return the position behind them.

        A record is seven numbers: offset and timestamp (in ms) with the bases added, start and size of key and of value
        in `columns.data`, size −1 for null, and where the count of its headers stands, `NO_HEADERS` where it has none.
        Columns may hold records of the same data already; those stay as they are.

        The records must end at or before `end`; their offset deltas ascend from above `previous_delta` to at most
        `last_delta`; varints are at most 32 bits, timestamp deltas 64. Headers are checked and not made; a record that
        claims more than `max_headers` is refused by its claim alone. On CorruptBatchError the columns hold the records
        before the bad one, and nothing of it. Nothing else is raised, whatever the bytes are.
        """
        ...


PURE: Final[Decoder] = PureDecoder()
"""The reference."""

_in_use: Decoder = PURE


def decoder_in_use() -> Decoder:
    """The decoder of every reader that is not given another one."""
    return _in_use

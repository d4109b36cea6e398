"""The interface of decoders, so that native code can replace the Python one: record bytes → columns.

    bytes of a Fetch ─▶ framing, CRC, decompression ─▶ decode ─▶ columns ─▶ record objects   poll()
                        (batch, compression)                             ─▶ Arrow            to_arrow(), Spark, Parquet

Only `decode` reads records byte by byte, of format 2; formats 0 and 1 stay in Python (`legacy`).

    decoder_python     the reference, and the only one without a C compiler
    decoder_native     native/decoder.c, where it is built

`decoder_in_use` chooses for poll(), Arrow and Spark: `PartitionReader` calls it, and no other code in the client
decodes records of format 2 for a user. The embedded cluster always uses the Python decoder, so that tests compare two
implementations.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Final, Literal, Protocol

import attrs

from kclient.errors import ConfigError
from kclient.records.columns import Columns
from kclient.records.decoder_python import PythonDecoder

MIN_RECORD_BYTES = 7


class Decoder(Protocol):
    """A kind of columns, and the function that fills them.

    `columns_type` is `Columns` or a subclass whose number columns are, say, arrays: 64 bits for offsets and timestamps,
    32 for the rest. It is made with (data, timestamp_type, leader_epoch), and `stamp`, `drop` and `split` must do what
    those of `Columns` do. Arrays of C's own numbers are copied to Arrow as a whole, lists number by number.

    Ownership: `columns.data` is an immutable bytes object that the columns own: a decompressed section, or the
    whole records field of a Fetch. Keys and values are spans of it and are not copied. The numbers belong to the
    columns. A decoder keeps no reference to either after the call, so one decoder serves all threads, and may release
    the GIL: no other thread has these columns meanwhile. Record objects and Arrow arrays own copies.

    `tests/records/test_decoders.py` compares the columns and errors of every implementation with those of a plain
    reading of the layout; `tests/records/test_custom_decoder.py` checks that all records of a user go through this
    interface.
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
        """Append `count` (≥ 1) records that begin at `position` of `columns.data`; return the position after them.

        A record is seven numbers: offset and timestamp (in ms) with the bases added, start and size of key and of value
        in `columns.data`, size −1 for null, and where the count of its headers stands, `NO_HEADERS` where it has none.
        Columns may hold records of the same data already; those stay as they are.

        The records must end at or before `end`; their offset deltas ascend from above `previous_delta` to at most
        `last_delta`; varints are at most 32 bits, timestamp deltas 64. Headers are checked and not made; a record that
        claims more than `max_headers` is rejected without reading them. On CorruptBatchError the columns hold the
        records before the bad one, and nothing of it. No other exception is raised, whatever the bytes are.
        """
        ...


PYTHON_DECODER: Final[Decoder] = PythonDecoder()
"""The reference implementation."""

VARIABLE: Final = "KCLIENT_DECODER"


@attrs.frozen
class DecoderChoice:
    """Which decoder reads records, and why not the other: `print(kclient.decoder())`."""

    name: Literal["native", "python"]
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def decoder_in_use() -> Decoder:
    """Return the decoder of every reader that gets no other one. Raise what `decoder` raises."""
    return _in_use()[0]


def decoder() -> DecoderChoice:
    """Return which decoder reads records, and why.

    It is the native one where its extension is built. The environment variable KCLIENT_DECODER, python or native,
    overrides that; it is read once. Raise ConfigError if it has another value, or is native without the extension.
    """
    return _in_use()[1]


def is_native() -> bool:
    """Return whether the native extension is in use, which makes Arrow columns too. Raise what `decoder` raises."""
    return decoder().name == "native"


def reads_small_batches(decoder: Decoder) -> bool:
    """Return whether the decoder is that of the extension, which decodes several small batches at once too."""
    return getattr(decoder, "reads_small_batches", False) is True


@functools.cache
def _in_use() -> tuple[Decoder, DecoderChoice]:
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "python", "native"):
        raise ConfigError(f"{VARIABLE} is {wanted!r}. It can be python or native.")
    if wanted == "python":
        return PYTHON_DECODER, DecoderChoice("python", f"{VARIABLE} is python")
    try:
        # Loading what was built for the other builds would end the process.
        if "free-threading" in sys.version:
            raise ImportError("free-threaded Python has other objects")
        from kclient.records.decoder_native import NativeDecoder
    except ModuleNotFoundError:
        missing = "the native decoder is not built for this Python on this platform"
    except ImportError as exc:
        missing = f"the native decoder cannot be loaded: {exc}"
    else:
        return NativeDecoder(), DecoderChoice("native", f"{VARIABLE} is native" if wanted else "it is built")
    if wanted == "native":
        raise ConfigError(
            f"{VARIABLE} is native, but {missing}. Unset {VARIABLE}, or install kclient-kafka again where there is "
            "a C compiler and Python's headers."
        )
    return PYTHON_DECODER, DecoderChoice("python", missing)

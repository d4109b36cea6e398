"""What the tests of decoding share: a decoder from options, and batches as the reader makes them."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kclient.spark.decoding import ValueDecoder, decoder_of
from kclient.spark.options import SourceOptions


def decoder(**options: str) -> ValueDecoder:
    """As a worker has it: made from options on the driver, and sent. `__` in a name stands for a dot."""
    given = {name.replace("__", "."): value for name, value in options.items()}
    base = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "flights"}
    made = decoder_of(SourceOptions.parse({**base, **given}))
    assert made is not None
    sent = pickle.loads(pickle.dumps(made))
    assert isinstance(sent, ValueDecoder)
    return sent


def raw(values: Sequence[bytes | None], keys: Sequence[bytes | None] | None = None) -> pa.RecordBatch:
    """Records of flights-3 from offset 100 on."""
    count = len(values)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(keys if keys is not None else [None] * count, pa.binary()),
            pa.array(values, pa.binary()),
            pa.array(["flights"] * count, pa.string()),
            pa.array([3] * count, pa.int32()),
            pa.array(range(100, 100 + count), pa.int64()),
        ],
        names=["key", "value", "topic", "partition", "offset"],
    )


def values_of(decoder: ValueDecoder, values: Sequence[bytes | None]) -> list[Any]:
    """What the values become."""
    batch = decoder.decode(raw(values), ["value"])
    assert batch.schema.equals(decoder.arrow_schema(["value"]))
    return list(batch.column("value").to_pylist())

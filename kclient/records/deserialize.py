"""The user's deserializers, run over columns. They stop at the first record that fails.

A deserializer is any callable `(topic, headers, data) -> T`. Null is never given to it; an empty key or value
is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from kclient.errors import DecodeError
from kclient.records.columns import Columns, Headers
from kclient.types import TopicPartition

Deserializer: TypeAlias = Callable[[str, Headers, bytes], Any]


def deserialize(
    columns: Columns,
    count: int,
    partition: TopicPartition,
    key_with: Deserializer | None,
    value_with: Deserializer | None,
) -> tuple[int, DecodeError | None]:
    """Fill `columns.keys` and `columns.values` for the first `count` records.

    Returns for how many it went well, and the error that stopped it. What is no Exception (KeyboardInterrupt)
    passes.

    Spec: B.11.6, B.10.11, S2-48.
    """
    raw_keys, raw_values = columns.raw_keys(), columns.raw_values()
    keys: list[Any] = []
    values: list[Any] = []
    columns.keys, columns.values = keys, values
    topic = partition.topic
    part = "key"
    try:
        for raw_key, raw_value, headers in zip(raw_keys[:count], raw_values, columns.headers, strict=False):
            part = "key"
            key = raw_key if key_with is None or raw_key is None else key_with(topic, headers, raw_key)
            part = "value"
            value = (
                raw_value
                if value_with is None or raw_value is None
                else value_with(topic, headers, raw_value)
            )
            keys.append(key)
            values.append(value)
    except Exception as error:  # noqa: BLE001 - the user's code may raise anything; it becomes the cause
        index = len(values)
        del keys[index:]
        failure = _failure(columns, partition, index, part, error)
        failure.raw_key, failure.raw_value = raw_keys[index], raw_values[index]
        failure.__cause__ = error
        return index, failure
    return count, None


def _failure(
    columns: Columns, partition: TopicPartition, index: int, part: str, error: Exception
) -> DecodeError:
    offset = columns.offsets[index]
    return DecodeError(
        f"The {part} deserializer failed on the record at offset {offset} of {partition}: "
        f"{type(error).__name__}. "
        f"The record is not what the deserializer expects; its bytes are attributes of this error. "
        f"Mend the deserializer and poll again, or seek to offset {offset + 1} to go past the record.",
        topic=partition.topic,
        partition=partition.partition,
        offset=offset,
        timestamp=columns.timestamps[index],
        headers=columns.headers[index],
        part=part,
    )

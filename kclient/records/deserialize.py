"""Run the user's deserializers over columns, up to the first record that fails or, with `on_decode_error`, over all.

A deserializer is any callable `(topic, headers, data) -> T`. Null is never given to it; an empty key or value is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from kclient.errors import ConfigError, ConnectError, DecodeError
from kclient.records.columns import Columns
from kclient.records.undecodable import DeadLetterSink, Undecodable, Undecoded, dead_letter
from kclient.types import DeserializerFunction, Headers, TopicPartition

EXTERNAL_ERRORS: Final = (ConnectError, ConfigError)
"""What a deserializer raises if a schema registry does not answer, or a setting is wrong: the record is not at fault,
and is neither skipped nor kept nor a dead letter."""


@attrs.frozen
class Deserialized:
    """The result of `fill`: the columns hold `count` records now, and `failed` ones were kept or left out.

    `next_offset` follows the last record that was dealt with (None: there was none), or is that of `failure`.
    """

    count: int
    next_offset: int | None
    failed: int = 0
    failure: DecodeError | None = None


@attrs.define
class Deserializers:
    """The deserializers of one partition. `undecodable` says what to do with records that fail; None: stop."""

    partition: TopicPartition
    key_with: DeserializerFunction[Any] | None
    value_with: DeserializerFunction[Any] | None
    undecodable: Undecodable | None = None

    def fill(self, columns: Columns, count: int) -> Deserialized:
        """Fill `columns.keys` and `columns.values` for the first `count` records; those left out are taken out of all.

        Other exceptions (KeyboardInterrupt) are not caught.
        """
        raw_keys, raw_values = columns.raw_keys(), columns.raw_values()
        keys: list[Any] = []
        values: list[Any] = []
        columns.keys, columns.values = keys, values
        records = zip(raw_keys[:count], raw_values, columns.headers, strict=False)
        left_out: list[int] = []
        failed = 0
        while (failure := self._run(records, columns, keys, values)) is not None:
            index = len(values)
            failure.raw_key, failure.raw_value = raw_keys[index], raw_values[index]
            is_external = isinstance(failure.__cause__, EXTERNAL_ERRORS)
            if is_external or self.undecodable is None or not self._deal_with(failure, columns, keys, values):
                del keys[index:]
                break
            failed += 1
            if not self.undecodable.keeps:
                left_out.append(index)
        done = len(values)
        next_offset = columns.offsets[done - 1] + 1 if done else None
        for index in reversed(left_out):
            columns.drop(index, index + 1)
        if failure is not None:
            next_offset = failure.offset
        return Deserialized(done - len(left_out), next_offset, failed, failure)

    def _run(
        self,
        records: Iterator[tuple[bytes | None, bytes | None, Headers]],
        columns: Columns,
        keys: list[Any],
        values: list[Any],
    ) -> DecodeError | None:
        """Deserialize until the records end or one fails, and return its error.

        The iterator has consumed the failed record, and `keys` has its key if only the value failed.
        """
        key_with, value_with, topic = self.key_with, self.value_with, self.partition.topic
        try:
            for raw_key, raw_value, headers in records:
                keys.append(
                    raw_key if key_with is None or raw_key is None else key_with(topic, headers, raw_key)
                )
                values.append(
                    raw_value
                    if value_with is None or raw_value is None
                    else value_with(topic, headers, raw_value)
                )
        except Exception as exc:  # noqa: BLE001 - the user's code may raise anything; it becomes the cause
            part = "value" if len(keys) > len(values) else "key"
            return _failure(columns, self.partition, len(values), part, exc)
        return None

    def _deal_with(self, failure: DecodeError, columns: Columns, keys: list[Any], values: list[Any]) -> bool:
        """Put what the configuration asks for in the record's place; False where the sink failed: stop at it."""
        undecodable = self.undecodable
        if undecodable is not None and undecodable.sink is not None:
            problem = _bury(failure, undecodable.sink)
            if problem is not None:
                failure.args = (
                    f"{failure.text} Nothing is left out, for the dead-letter sink failed as well: {problem}. "
                    "Mend the sink and poll again.",
                )
                return False
        if failure.part == "key":
            value = self._value(failure, columns)
            keys.append(_undecoded(failure, failure.raw_key))
            values.append(value)
        else:
            values.append(_undecoded(failure, failure.raw_value))
        return True

    def _value(self, failure: DecodeError, columns: Columns) -> Any:
        """The value of a record whose key failed, if anybody will see it."""
        raw = failure.raw_value
        if self.undecodable is None or not self.undecodable.keeps or self.value_with is None or raw is None:
            return raw
        try:
            return self.value_with(self.partition.topic, tuple(failure.headers), raw)
        except Exception as exc:  # noqa: BLE001 - as in `_run`
            also = _failure(columns, self.partition, columns.offsets.index(failure.offset), "value", exc)
            also.raw_key, also.raw_value = failure.raw_key, raw
            return _undecoded(also, raw)


def _undecoded(failure: DecodeError, raw: bytes | None) -> Undecoded:
    """What is kept must not keep alive what our own frame saw: the whole batch."""
    cause = failure.__cause__
    if cause is not None and cause.__traceback__ is not None:
        cause.__traceback__ = cause.__traceback__.tb_next
    return Undecoded(raw or b"", failure)


def _bury(failure: DecodeError, sink: DeadLetterSink) -> str | None:
    """Pass the record to the sink. Return the exception that the sink raised, if any."""
    try:
        sink(dead_letter(failure))
    except Exception as exc:  # noqa: BLE001 - the sink is the user's too
        return type(exc).__name__
    return None


def _failure(
    columns: Columns, partition: TopicPartition, index: int, part: str, error: Exception
) -> DecodeError:
    offset = columns.offsets[index]
    failure = DecodeError(
        _explained(error, part, f"at offset {offset} of {partition}", offset),
        topic=partition.topic,
        partition=partition.partition,
        offset=offset,
        timestamp=columns.timestamps[index],
        headers=columns.headers_of(index),
        part=part,
    )
    failure.__cause__ = error
    return failure


def _explained(error: Exception, part: str, where: str, offset: int) -> str:
    if isinstance(error, EXTERNAL_ERRORS):
        return (
            f"The {part} deserializer could not work on the record {where}: {error} "
            "Nothing is wrong with the record, and it is not skipped. Poll again when this is mended."
        )
    return (
        f"The {part} deserializer failed on the record {where}: {type(error).__name__}. "
        f"The record is not what the deserializer expects; its bytes are attributes of this error. "
        f"Mend the deserializer and poll again, or seek to offset {offset + 1} to go past the record."
    )

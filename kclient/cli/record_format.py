r"""How `kclient consume` prints a record: decoders of keys and values, format strings, JSON lines.

    %t topic    %p partition    %o offset          %T timestamp in ms    %d timestamp in UTC, ISO 8601
    %k key      %s value        %h headers         %K size of the key, %S of the value; -1 for null    %% a percent sign

These are kcat's tokens and `%d`; `%v` is `%s`, as in rpk. \n, \r, \t, \\ and \xNN stand for characters.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import uuid
from collections.abc import Callable, Mapping
from datetime import date, time
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import attrs

from kclient.cli.places import time_text
from kclient.errors import ArgumentError, DecodeError, KclientError
from kclient.text import printable_lines

if TYPE_CHECKING:
    from kclient.deserializers import RegistryDeserializer
    from kclient.records.records import Record

Decoder: TypeAlias = Callable[[bytes], Any]
Pieces: TypeAlias = "Callable[[Record[Any, Any]], bytes]"
Form = Literal[
    "text",
    "json",
    "hex",
    "base64",
    "short",
    "integer",
    "long",
    "float",
    "double",
    "uuid",
    "registry",
    "protobuf",
]


def _number(layout: str) -> Decoder:
    return lambda data: struct.unpack(layout, data)[0]


def _text(data: bytes) -> Any:
    """Return the text, or for bytes that are not UTF-8 an object with their base64, so that nothing is lost."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


DECODERS: Final[Mapping[Form, Decoder]] = {
    "text": _text,
    "json": json.loads,
    "hex": bytes.hex,
    "base64": lambda data: base64.b64encode(data).decode(),
    # As Kafka's own serializers write them.
    "short": _number(">h"),
    "integer": _number(">i"),
    "long": _number(">q"),
    "float": _number(">f"),
    "double": _number(">d"),
    "uuid": lambda data: str(uuid.UUID(data.decode("ascii"))),
}
REGISTRY: Final = "registry"
PROTOBUF: Final = "protobuf"
AS_JSON: Final = ("json", REGISTRY, PROTOBUF)
_BAD_DATA: Final = (ValueError, struct.error, RecursionError)
_TOKEN: Final = re.compile(r"%(.?)|\\(x[0-9A-Fa-f]{2}|.?)", re.DOTALL)
_ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\"}


@attrs.frozen
class RecordFormat:
    """What is printed of keys and values, and what stands for null in text.

    `registry` decodes the form `registry`; `messages`, by the part of a record, the form `protobuf`.
    """

    key: Form = "text"
    value: Form = "text"
    null: str = ""
    registry: RegistryDeserializer[Any] | None = None
    messages: Mapping[str, Decoder] = attrs.field(factory=dict)

    def decoded(self, record: Record[Any, Any], part: Literal["key", "value"]) -> Any:
        """Return the key or value as JSON has it. Raise DecodeError."""
        data, form = (record.key, self.key) if part == "key" else (record.value, self.value)
        if data is None:
            return None
        try:
            if form == REGISTRY and self.registry is not None:
                return self.registry.deserialize(record.topic, record.headers, data)
            return self.messages[part](data) if form == PROTOBUF else DECODERS[form](data)
        except (
            KclientError
        ):  # of the registry, which does not answer or refuses; a ConfigError is a ValueError too
            raise
        except _BAD_DATA as exc:
            raise _not_decoded(record, part, form) from exc

    def as_bytes(self, record: Record[Any, Any], part: Literal["key", "value"]) -> bytes:
        """Return the key or value as text has it: unchanged bytes for `text`. Raise DecodeError."""
        data, form = (record.key, self.key) if part == "key" else (record.value, self.value)
        if data is None:
            return typed_bytes(self.null)
        if form == "text":
            return bytes(data)
        found = self.decoded(record, part)
        if form not in AS_JSON:
            return str(found).encode()
        try:
            return compact_json(found)
        except RecursionError as exc:  # brackets inside brackets, which could just be read
            raise _not_decoded(record, part, form) from exc

    def to_json(self, record: Record[Any, Any]) -> dict[str, Any]:
        """Return one line of `--json`; keys are only ever added to it."""
        return {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestamp_type": record.timestamp_type.name.lower(),
            "key": self.decoded(record, "key"),
            "value": self.decoded(record, "value"),
            "headers": [
                {"key": name, "value": None if data is None else _text(data)} for name, data in record.headers
            ],
        }

    def json_line(self, record: Record[Any, Any]) -> bytes:
        """Return the record as one line of JSON. Raise DecodeError."""
        found = self.to_json(record)
        try:
            return compact_json(found) + b"\n"
        except RecursionError as exc:
            part: Literal["key", "value"] = "value" if self.value in AS_JSON else "key"
            raise _not_decoded(record, part, getattr(self, part)) from exc

    def compile(self, template: str) -> Pieces:
        """Return a function from a record to what the format string makes of it. Raise ArgumentError."""
        pieces: list[Pieces] = []
        position = 0
        for found in _TOKEN.finditer(template):
            pieces += [_constant(typed_bytes(template[position : found.start()])), self._piece(found)]
            position = found.end()
        pieces.append(_constant(typed_bytes(template[position:])))
        return lambda record: b"".join([piece(record) for piece in pieces])

    def _piece(self, found: re.Match[str]) -> Pieces:
        token, escape = found[1], found[2]
        if token is None:
            return _constant(_unescaped(escape))
        tokens: dict[str, Pieces] = {
            "t": lambda record: record.topic.encode(),
            "p": lambda record: b"%d" % record.partition,
            "o": lambda record: b"%d" % record.offset,
            "T": lambda record: b"%d" % record.timestamp,
            "d": lambda record: time_text(record.timestamp).encode(),
            "k": lambda record: self.as_bytes(record, "key"),
            "s": lambda record: self.as_bytes(record, "value"),
            "v": lambda record: self.as_bytes(record, "value"),
            "h": _headers,
            "K": lambda record: b"%d" % _size(record.key),
            "S": lambda record: b"%d" % _size(record.value),
            "%": _constant(b"%"),
        }
        if token not in tokens:
            raise ArgumentError(
                f"--format has %{token}, which is no token. There are "
                f"{' '.join(f'%{one}' for one in tokens)}; a percent sign is %%."
            )
        return tokens[token]


def for_terminal(data: bytes) -> bytes:
    """Return what cannot steer a terminal: control characters as escapes, but line breaks and tabs."""
    text = data.decode(errors="backslashreplace")
    return printable_lines(text, longest=len(text)).encode()


def typed_bytes(text: str) -> bytes:
    """Return what the user has typed, as UTF-8; bytes that are none, such as those of another encoding, unchanged."""
    return text.encode(errors="surrogateescape")


def unescaped(text: str) -> bytes:
    r"""Return a text with its escapes replaced: \n, \r, \t, \\ and \xNN. Raise ArgumentError for another."""
    return re.sub(
        rb"\\(x[0-9A-Fa-f]{2}|.?)",
        lambda found: _unescaped(found[1].decode("latin-1")),
        typed_bytes(text),
        flags=re.DOTALL,
    )


def _unescaped(escape: str) -> bytes:
    if escape.startswith("x") and len(escape) == 3:
        return bytes.fromhex(escape[1:])
    if escape not in _ESCAPES:
        raise ArgumentError(f"\\{escape} is no escape. There are \\n, \\r, \\t, \\\\ and \\xNN.")
    return _ESCAPES[escape]


def _constant(data: bytes) -> Pieces:
    return lambda record: data


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _headers(record: Record[Any, Any]) -> bytes:
    """Return the headers as kcat prints them: name=value,name=value."""
    return b",".join(name.encode() + b"=" + (b"" if data is None else data) for name, data in record.headers)


def compact_json(value: Any) -> bytes:
    """Return JSON on one line, as UTF-8. Half of a surrogate pair, which UTF-8 does not have, stays an escape."""
    try:
        return _dumped(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return _dumped(value, ensure_ascii=True).encode()


def _dumped(value: Any, *, ensure_ascii: bool) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, separators=(",", ":"), default=_as_json)


def _as_json(value: Any) -> Any:
    """Return what JSON has no type for: bytes, dates and times of Avro's logical types, decimals."""
    if isinstance(value, bytes):
        return _text(value)
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _not_decoded(record: Record[Any, Any], part: str, form: str) -> DecodeError:
    place = f"{record.topic}-{record.partition} at offset {record.offset}"
    what = "framed with an id that the registry has" if form == REGISTRY else form
    return DecodeError(
        f"The {part} of the record in {place} is not {what}. It was written in another format, or is damaged. "
        f"Look at it with --{part}-format hex -p {record.partition} -o {record.offset} -n 1, or begin after it.",
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp=record.timestamp,
        headers=record.headers,
        raw_key=record.key,
        raw_value=record.value,
        part=part,
    )

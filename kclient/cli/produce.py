"""`kclient produce TOPIC`: write lines as records, to try things out.

It is a tool and no producer library. A record goes to the partition of its key as with Java's producer, with acks=all,
and each chunk of input is sent before the next one is read. There is no idempotence: what a broker refused is sent
again, but if a connection is lost while a response is awaited the command ends, because the records may be stored.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json as json_form
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, cast

import attrs
from cyclopts import Parameter

from kclient.cli import program
from kclient.cli.admin_client import AdminClient
from kclient.cli.exit_codes import OK
from kclient.cli.options import ConnectionOptions, choice, flag, option
from kclient.cli.record_format import compact_json, typed_bytes, unescaped
from kclient.errors import ArgumentError
from kclient.records.compression import Compression
from kclient.records.writer import NewRecord
from kclient.runtime import Runtime
from kclient.text import format_count, printable

CHUNK_BYTES: Final = 262_144
FROM_ELSEWHERE: Final = ("topic", "partition", "offset", "timestamp_type")
"""Keys of a line of `consume --json` that say where the record was read, and not what it is."""

Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
ToRecord = Callable[[bytes, int], NewRecord]


def produce(
    topic: Annotated[str, Parameter(help="the topic, which must exist")],
    /,
    *,
    key_separator: Annotated[
        str | None, option("a line is key, this text, value", "TEXT", alias="-K")
    ] = None,
    key: Annotated[str | None, option("the key of every record", "TEXT", alias="-k")] = None,
    header: Annotated[
        list[str] | None, option("a header of every record; repeat for more", "NAME=VALUE", alias="-H")
    ] = None,
    null: Annotated[
        str | None, option("this text means null, as key and as value", "TEXT", alias="-Z")
    ] = None,
    from_json: Annotated[
        bool,
        flag("a line is an object with value, key, headers, timestamp, as consume --json prints", alias="-J"),
    ] = False,
    partition: Annotated[int | None, option("write to this partition", "N", alias="-p")] = None,
    compression: Annotated[str, choice("compress the batches", Codec)] = "none",
    json: Annotated[bool, flag("one JSON object at the end: how many records each partition got")] = False,
    connection: Annotated[ConnectionOptions, Parameter(name="*")] = ConnectionOptions(),  # noqa: B008 – frozen
) -> int:
    r"""Write the lines of standard input as records. It is a tool for trying things, and no producer library.

    echo 'k1:{"amount": 3}' | kclient produce orders -b localhost:9092 -K :
    """
    if from_json and (key_separator is not None or key is not None or null is not None or header):
        raise ArgumentError("--from-json is not allowed with --key-separator, --key, --null or --header")
    if key_separator is not None and key is not None:
        raise ArgumentError("--key-separator is not allowed with --key")
    to_record: ToRecord = record_of_json
    if not from_json:
        separator = None if key_separator is None else unescaped(key_separator)
        to_record = LineFormat(separator, _bytes(key), _headers(header or ()), _bytes(null)).record
    if sys.stdin is None:
        raise ArgumentError(
            f"standard input is closed. Type: {program()} produce {topic} -b HOST:PORT < FILE"
        )
    if sys.stdin.isatty():
        sys.stderr.write("each line is a record; Ctrl-D ends\n")
    from kclient.cli.record_sender import RecordSender

    runtime = Runtime()
    config = connection.config()
    with asyncio.Runner() as runner:
        client = runner.run(_client(config, runtime))
        sender = RecordSender(client, topic, partition, Compression[compression.upper()])
        try:
            runner.run(sender.open())
            for lines in chunks():
                records: list[NewRecord] = []
                try:
                    records.extend(to_record(line, runtime.wall_ms()) for line in lines)
                finally:  # also those before a line that cannot be a record, which extend has added
                    runner.run(sender.send(records))
        finally:
            runner.run(client.__aexit__())
    _report(topic, sender.counts, json)
    return OK


async def _client(config: Any, runtime: Runtime) -> AdminClient:
    return AdminClient(config, runtime)


def _report(topic: str, counts: Mapping[int, int], json: bool) -> None:
    if json:
        partitions = {str(number): counts[number] for number in sorted(counts)}
        sys.stdout.write(
            json_form.dumps({"topic": topic, "records": sum(counts.values()), "partitions": partitions})
            + "\n"
        )
    elif sys.stderr.isatty():
        sys.stderr.write(f"{format_count(sum(counts.values()), 'record')} written to {topic}\n")


def chunks() -> Iterator[list[bytes]]:
    """Yield the lines of standard input as they come, without their line breaks."""
    rest = b""
    stream = cast(io.BufferedReader, sys.stdin.buffer)
    while data := stream.read1(CHUNK_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest]


# --- lines


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else typed_bytes(text)


def _headers(given: Sequence[str]) -> list[tuple[str, bytes | None]]:
    pairs = [text.partition("=") for text in given]
    for name, equals, _ in pairs:
        if not (name and equals and _is_unicode(name)):
            raise ArgumentError(f"--header {printable(name)} is not NAME=VALUE, with a name in UTF-8")
    return [(name, typed_bytes(value)) for name, _, value in pairs]


def _is_unicode(text: str) -> bool:
    """Return whether UTF-8 has the text: not half of a surrogate pair."""
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


@attrs.frozen
class LineFormat:
    """How a line is a record."""

    separator: bytes | None = None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    null: bytes | None = None

    def record(self, line: bytes, timestamp: int) -> NewRecord:
        """Return the line as a record. Raise ArgumentError if the separator is missing."""
        key, value = self.key, line
        if self.separator is not None:
            key, found, value = line.partition(self.separator)
            if not found:
                raise ArgumentError(
                    f"a line has no {self.separator.decode(errors='backslashreplace')!r} between key and value. "
                    "The records before it are written. Give another --key-separator, or leave it out."
                )
        return NewRecord(self._or_null(key), self._or_null(value), timestamp, self.headers)

    def _or_null(self, data: bytes | None) -> bytes | None:
        return None if data == self.null else data


def record_of_json(line: bytes, timestamp: int) -> NewRecord:
    """Return an object as `consume --json` prints it as a record. Raise ArgumentError."""
    try:
        found = json_form.loads(line)
    except (ValueError, RecursionError) as exc:
        raise ArgumentError(f"a line is not JSON: {exc}. The records before it are written.") from exc
    if not isinstance(found, dict):
        raise ArgumentError(
            "a line is JSON, but not an object with a value. The records before it are written."
        )
    unknown = found.keys() - {"key", "value", "headers", "timestamp", *FROM_ELSEWHERE}
    given = found.get("timestamp", timestamp)
    headers = found.get("headers") or []
    if (
        unknown
        or not isinstance(given, int)
        or not (isinstance(headers, list) and all(map(_is_header, headers)))
    ):
        what = f"the unknown key {min(unknown)!r}" if unknown else "headers or a timestamp that are none"
        raise ArgumentError(
            f"a line has {what}. An object has value, key, headers as [{{key, value}}], and timestamp in ms. "
            "The records before it are written."
        )
    pairs = [(str(one["key"]), _of_json(one.get("value"))) for one in headers]
    return NewRecord(_of_json(found.get("key")), _of_json(found.get("value")), given, pairs)


def _is_header(one: Any) -> bool:
    return isinstance(one, dict) and "key" in one and _is_unicode(str(one["key"]))


def _of_json(value: Any) -> bytes | None:
    """Return text as UTF-8, {"base64": …} as its bytes, and anything else as JSON. Raise ArgumentError."""
    if value is None:
        return None
    if isinstance(value, str):
        if not _is_unicode(value):
            raise ArgumentError(
                "a line has a text with half of a surrogate pair, which UTF-8 does not have. "
                "The records before it are written."
            )
        return value.encode()
    if isinstance(value, dict) and value.keys() == {"base64"}:
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (ValueError, TypeError) as exc:
            raise ArgumentError(
                f"a line has a base64 that is none: {exc}. The records before it are written."
            ) from exc
    return compact_json(value)

"""`kclient consume TOPIC`: print the records of topics, from a place to a place, without a group or as its member.

    without --group     the partitions are assigned; nothing is committed
    with --group        the topics are subscribed to; what was printed is committed every few seconds, before partitions
                        are revoked, and at the end, however that comes about

An offset is committed after its record was flushed to standard output, so a reader that closes its pipe gets at the
next run what it did not read.
"""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast, get_args

from cyclopts import Group, Parameter

from kclient.cli import program
from kclient.cli.exit_codes import INTERRUPTED, OK
from kclient.cli.options import ConnectionOptions, choice, flag, option
from kclient.cli.places import Place, offsets_of, parse_place
from kclient.cli.record_format import PROTOBUF, REGISTRY, Decoder, Form, RecordFormat, typed_bytes, unescaped
from kclient.errors import ArgumentError
from kclient.runtime import Runtime
from kclient.security.secret import env
from kclient.spark.ingest.stop_signals import stop_on_signals
from kclient.text import printable
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.cli.record_printer import RecordPrinter
    from kclient.records.records import Record
    from kclient.sync import Consumer

WHICH = Group("What is read", sort_key=1)
HOW = Group("How it is printed", sort_key=2)

_PLAIN: Final = tuple(form for form in get_args(Form) if form != PROTOBUF)
FORMS: Final = f"{', '.join(_PLAIN)}, or {PROTOBUF}:FILE#MESSAGE with a file of protoc --descriptor_set_out"

Isolation = Literal["read_uncommitted", "read_committed"]


def consume(
    *topics: Annotated[str, Parameter(name="TOPIC", required=False, help="the topics to read")],
    partition: Annotated[
        list[str] | None, option("only these partitions", "N,N", group=WHICH, alias="-p")
    ] = None,
    offset: Annotated[
        str | None,
        option(
            "where to begin: beginning (default), end, 17, -100 (the last 100 of each partition), "
            "@2026-11-20T14:00Z or @-1h",
            "PLACE",
            group=WHICH,
            alias="-o",
            allow_leading_hyphen=True,
        ),
    ] = None,
    until: Annotated[
        str | None,
        option(
            "where to stop, in the same words; the end is that of now",
            "PLACE",
            group=WHICH,
            allow_leading_hyphen=True,
        ),
    ] = None,
    exit_at_end: Annotated[
        bool, flag("stop at the end of the partitions: --until end", group=WHICH, alias="-e")
    ] = False,
    count: Annotated[
        int | None, option("stop when so many records are printed", "N", group=WHICH, alias="-n")
    ] = None,
    grep_key: Annotated[
        str | None, option("only records whose key has a match for this expression", "REGEX", group=WHICH)
    ] = None,
    grep: Annotated[str | None, option("the same for the value", "REGEX", group=WHICH)] = None,
    group: Annotated[
        str | None,
        option(
            "read as a member of this group, from what it has committed, and commit what is printed",
            "GROUP",
            group=WHICH,
            alias="-g",
        ),
    ] = None,
    isolation_level: Annotated[
        str | None, choice("read_committed leaves out aborted transactions", Isolation, group=WHICH)
    ] = None,
    format: Annotated[  # noqa: A002 – the option's name
        str | None,
        option(
            r"what is printed: %t %p %o %T (ms) %d (date) %k %s %h %K %S (sizes) and \n \t; default '%s\n'",
            "FORMAT",
            group=HOW,
            alias="-f",
        ),
    ] = None,
    key_separator: Annotated[
        str | None, option("print the key and this before the value", "TEXT", group=HOW, alias="-K")
    ] = None,
    json: Annotated[bool, flag("one JSON object on a line for each record", group=HOW, alias="-J")] = False,
    key_format: Annotated[str, option(f"what keys are: {FORMS}", "FORM", group=HOW)] = "text",
    value_format: Annotated[
        str | None,
        option(
            "what values are, in the same words (default text, or registry with --registry)",
            "FORM",
            group=HOW,
        ),
    ] = None,
    registry: Annotated[
        str | None,
        option(
            "the schema registry of values (Avro, JSON Schema), and of keys with --key-format registry",
            "URL",
            group=HOW,
        ),
    ] = None,
    registry_auth_env: Annotated[
        str | None,
        option("the environment variable with user:password or 'bearer TOKEN' for it", "NAME", group=HOW),
    ] = None,
    null: Annotated[str, option("what stands for null in text", "TEXT", group=HOW, alias="-Z")] = "",
    connection: Annotated[ConnectionOptions, Parameter(name="*")] = ConnectionOptions(),  # noqa: B008 – frozen
) -> int:
    r"""Print the records of topics.

    It waits for new records until it is interrupted, unless -e, --until or -n says where to stop. Without --group it
    joins no group and commits nothing.

        kclient consume orders -b localhost:9092 -o -5 -e -f '%p %o %k %s\n'
    """
    if not topics:
        raise ArgumentError(
            f"name at least one TOPIC. Type: {program()} topics -b HOST:PORT to see which there are."
        )
    for topic in topics:
        _check_name(topic)
    from kclient.cli.record_printer import CommitOnRevoke, Limits, RecordPrinter
    from kclient.sync import Consumer

    runtime = Runtime()
    start = None if offset is None else parse_place(offset, "--offset", runtime)
    limits = Limits(
        count, _end(until, exit_at_end, runtime), _regex("--grep-key", grep_key), _regex("--grep", grep)
    )
    if count is not None and count < 1:
        raise ArgumentError(f"--count must be 1 or more, not {count}")
    numbers = _numbers(partition or ())
    form = _format(key_format, value_format, null, registry, registry_auth_env)
    line = _line_of(form, format, key_separator, json)
    if group is not None and partition:
        raise ArgumentError(
            "--partition is not allowed with --group: the group decides who reads which partition"
        )
    if group is not None and start is not None and start.word is None:
        raise ArgumentError(
            f"--group begins where the group has committed; --offset {offset} is not allowed with it. "
            f"Type: {program()} groups reset {group} --help to move what is committed."
        )
    settings = connection.consumer_settings(
        group_id=group,
        isolation_level=isolation_level,
        auto_offset_reset="latest" if start is not None and start.word == "end" else "earliest",
        enable_auto_commit=False,
        allow_auto_create_topics=False,
    )
    with stop_on_signals() as stop, Consumer(config=settings) as consumer:
        printer = RecordPrinter(consumer, limits, line, runtime, stop, commits=group is not None)
        if group is None:
            _assign(consumer, printer, topics, numbers, start or Place(word="beginning"))
        else:
            for topic in topics:
                _partitions(consumer, topic)
            consumer.subscribe(topics, listener=CommitOnRevoke(printer))
        stop.begin_work()
        printer.run()
    if stop and not (stop.signal == signal.SIGTERM and limits.end is None and count is None):
        return INTERRUPTED
    return OK


def _format(key: str, value: str | None, null: str, url: str | None, auth_env: str | None) -> RecordFormat:
    """Return what keys and values are. Raise ArgumentError for a registry without a use, or the other way round."""
    forms = {"key": key, "value": value or ("text" if url is None else REGISTRY)}
    if (url is not None) != (REGISTRY in forms.values()):
        raise ArgumentError(f"--registry URL belongs to --value-format {REGISTRY} or --key-format {REGISTRY}")
    if auth_env is not None and url is None:
        raise ArgumentError("--registry-auth-env belongs to --registry URL")
    deserializer = None
    if url is not None:
        from kclient.deserializers import registry

        deserializer = registry(url, auth=None if auth_env is None else env(auth_env))
    messages: dict[str, Decoder] = {}
    for part, written in forms.items():
        form, colon, schema = written.partition(":")
        if form == PROTOBUF:
            from kclient.deserializers.protobuf import MessageReader, message_schema

            messages[part] = MessageReader(message_schema(f"--{part}-format {PROTOBUF}:", schema))
        elif colon or form not in _PLAIN:
            raise ArgumentError(f"--{part}-format {printable(written)} is none of {FORMS}")
        forms[part] = form
    return RecordFormat(cast(Form, forms["key"]), cast(Form, forms["value"]), null, deserializer, messages)


def _numbers(written: Sequence[str]) -> list[int]:
    """Return the partitions of `-p 0,1 -p 4`. Raise ArgumentError for what is no number of one."""
    words = [word.strip() for text in written for word in text.split(",")]
    for word in words:
        if not re.fullmatch(r"[0-9]{1,10}", word):
            raise ArgumentError(
                f"--partition {printable(word) or 'without a number'} is no partition: -p 0,1 are two"
            )
    return [int(word) for word in words]


def _end(until: str | None, exit_at_end: bool, runtime: Runtime) -> Place | None:
    if until is None:
        return Place(word="end") if exit_at_end else None
    if exit_at_end:
        raise ArgumentError("--exit-at-end is not allowed with --until, which says where to stop")
    place = parse_place(until, "--until", runtime)
    if place.timestamp_ms is not None and place.timestamp_ms > runtime.wall_ms():
        raise ArgumentError(f"--until {until} is in the future. Give a time that has passed, such as @now.")
    return place


def _regex(name: str, raw: str | None) -> re.Pattern[bytes] | None:
    try:
        return None if raw is None else re.compile(typed_bytes(raw))
    except re.error as exc:
        raise ArgumentError(f"{name} {printable(raw or '')} is not a regular expression: {exc}") from exc


def _line_of(
    form: RecordFormat, template: str | None, key_separator: str | None, json: bool
) -> Callable[[Record[Any, Any]], bytes]:
    """Return the function that prints a record. Raise ArgumentError for options that exclude each other."""
    given = [
        name
        for name, value in (("--format", template), ("--key-separator", key_separator))
        if value is not None
    ]
    if len([*given, *(["--json"] if json else [])]) > 1:
        raise ArgumentError(f"{given[0]} is not allowed with {'--json' if json else given[1]}")
    if json:
        return form.json_line
    if key_separator is not None:
        separator = unescaped(key_separator)
        return lambda record: (
            form.as_bytes(record, "key") + separator + form.as_bytes(record, "value") + b"\n"
        )
    return form.compile(r"%s\n" if template is None else template)


def _check_name(topic: str) -> None:
    """Raise ArgumentError for what no topic is called, which a broker answers with an error about patterns."""
    if not re.fullmatch(r"[a-zA-Z0-9._-]+", topic):
        raise ArgumentError(
            f"{printable(repr(topic))} is no topic's name: letters, digits, '.', '_' and '-'. Patterns are not taken. "
            f"Type: {program()} topics -b HOST:PORT to see which there are."
        )


def _partitions(consumer: Consumer, topic: str) -> list[TopicPartition]:
    """Return all partitions of a topic. Raise UnknownTopicError."""
    from kclient.cli.admin_client import unknown_topic

    found = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
    if found:
        return found
    raise unknown_topic(topic, consumer.list_topics())


def _assign(
    consumer: Consumer,
    printer: RecordPrinter,
    topics: Sequence[str],
    numbers: Sequence[int] | None,
    start: Place,
) -> None:
    """Assign the partitions and seek to where they begin; say where the log does not have the wanted offset."""
    partitions = [tp for topic in dict.fromkeys(topics) for tp in _partitions(consumer, topic)]
    if numbers:
        missing = set(numbers) - {tp.partition for tp in partitions}
        if missing:
            raise ArgumentError(
                f"--partition {min(missing)}: {', '.join(topics)} has the partitions 0 to "
                f"{max(tp.partition for tp in partitions)}"
            )
        partitions = [tp for tp in partitions if tp.partition in numbers]
    # Before there is a Fetch: a broker answers ListOffsets only after the Fetch that waits for records.
    starts = offsets_of(consumer, partitions, start)
    printer.look_up_ends(partitions)
    consumer.assign(partitions)
    for tp, at in starts.items():
        if start.offset is not None and at != start.offset:
            where = "begins" if at > start.offset else "ends"
            sys.stderr.write(
                f"{program()} consume: {printable(str(tp))} {where} at {at}, not at {start.offset}\n"
            )
        consumer.seek(tp, at)

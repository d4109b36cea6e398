"""`kclient consume`: what it prints, where it begins and stops, and what it commits."""

from __future__ import annotations

import base64
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from kclient import TopicPartition
from kclient.cli.record_format import RecordFormat
from kclient.embedded import EmbeddedCluster
from kclient.errors import DecodeError
from kclient.records.records import Record
from kclient.records.writer import NewRecord
from kclient.types import TimestampType
from tests.cli.support import COMMAND, PATIENCE, Done, call
from tests.deserializers.test_registry import VALUE, avro
from tests.lag.lag_setup import transaction
from tests.spark.registry import registry_server

HOUR = 3_600_000
NOON = (int(time.time()) - 24 * 3600) * 1000  # younger than the retention, by which the cluster deletes


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 2, "empty": 1, "odd": 1, "endless": 1}) as cluster:
        for number in range(10):
            record = NewRecord(
                b"k%d" % number, b"v%d" % number, NOON + number * HOUR, [("h", b"x"), ("n", None)]
            )
            cluster.produce("orders", [record], partition=number % 2)
        cluster.produce("odd", [NewRecord(None, b"\xff\x00", NOON), NewRecord(b"\x1b[31m", None, NOON)])
        cluster.produce("endless", ["x" * 100] * 5_000)
        yield cluster


def read(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str], *more: str, topic: str = "orders"
) -> Done:
    return call(capsys, "consume", topic, "-b", cluster.bootstrap_servers, *more)


def values(done: Done) -> list[str]:
    assert done.code == 0, done.err
    return sorted(done.out.split())


def committed(cluster: EmbeddedCluster, group: str) -> dict[TopicPartition, int]:
    return dict(cluster.committed(group))


def test_values_are_lines(cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]) -> None:
    done = read(cluster, capsys, "-e")
    assert done.err == ""
    assert values(done) == [f"v{number}" for number in range(10)]


def test_an_empty_topic_ends_at_once(cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert read(cluster, capsys, "-e", topic="empty") == (0, "", "")


@pytest.mark.parametrize(
    ("more", "numbers"),
    [
        (["-o", "beginning", "-n", "10"], range(10)),
        (["-e", "-o", "end"], ()),
        (["-e", "-o", "3"], (6, 7, 8, 9)),
        (["-e", "-o", "-1"], (8, 9)),
        (["-e", "-o", "-99"], range(10)),
        (["-e", "-p", "1"], (1, 3, 5, 7, 9)),
        (["-e", "-o", f"@{NOON + 7 * HOUR}"], (7, 8, 9)),
        (["--until", f"@{NOON + 2 * HOUR}"], (0, 1)),
        (["--until", "1", "-o", "0"], (0, 1)),
        (["-e", "-o", "@-1h"], ()),
        (["-e", "--grep-key", "k[12]$"], (1, 2)),
        (["-e", "--grep", "^v[^1-9]"], (0,)),
    ],
)
def test_where_it_begins_and_stops(
    more: list[str], numbers: range, cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert values(read(cluster, capsys, *more)) == [f"v{number}" for number in numbers]


def test_a_time_is_also_a_date(cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]) -> None:
    date = datetime.fromtimestamp(NOON / 1000 + 8 * 3600, UTC).isoformat()
    assert values(read(cluster, capsys, "-e", "-o", f"@{date}")) == ["v8", "v9"]


def test_an_offset_that_is_not_there_is_reported(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    done = read(cluster, capsys, "-e", "-p", "0", "-o", "77")
    assert (done.code, done.out) == (0, "")
    assert "orders-0 ends at 5, not at 77" in done.err


def test_the_tokens_of_a_format(cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]) -> None:
    template = r"%t %p %o %T %d %k=%s/%v %h %K %S %% \x41\t|\n"
    done = read(cluster, capsys, "-p", "1", "-n", "1", "-f", template)
    time_text = datetime.fromtimestamp(NOON / 1000 + 3600, UTC).isoformat(timespec="milliseconds")
    expected = f"orders 1 0 {NOON + HOUR} {time_text.replace('+00:00', 'Z')} k1=v1/v1 h=x,n= 2 2 % A\t|\n"
    assert (done.code, done.out) == (0, expected)


def test_null_has_a_size_and_a_text(cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]) -> None:
    done = read(cluster, capsys, "-e", "-Z", "NULL", "-f", r"%K %S %k\n", topic="odd")
    assert done.out.splitlines() == ["-1 2 NULL", "5 -1 \x1b[31m"]
    done = read(cluster, capsys, "-e", "-Z", "NULL", "-K", r"\t", "--value-format", "hex", topic="odd")
    assert done.out.splitlines() == ["NULL\tff00", "\x1b[31m\tNULL"]


def test_json_has_everything_and_loses_no_byte(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read(cluster, capsys, "-J", "-p", "0", "-n", "1").events == [
        {
            "topic": "orders",
            "partition": 0,
            "offset": 0,
            "timestamp": NOON,
            "timestamp_type": "create_time",
            "key": "k0",
            "value": "v0",
            "headers": [{"key": "h", "value": "x"}, {"key": "n", "value": None}],
        }
    ]
    first, second = read(cluster, capsys, "--json", "-e", topic="odd").events
    assert base64.b64decode(first["value"]["base64"]) == b"\xff\x00"
    assert (first["key"], second["value"]) == (None, None)


@pytest.mark.parametrize(
    ("form", "data", "shown"),
    [
        ("json", b'{"a": [1, 2]}', '{"a":[1,2]}'),
        ("hex", b"\x00\xab", "00ab"),
        ("base64", b"\x00\xab", "AKs="),
        ("short", struct.pack(">h", -2), "-2"),
        ("integer", struct.pack(">i", 70_000), "70000"),
        ("long", struct.pack(">q", 1 << 40), str(1 << 40)),
        ("double", struct.pack(">d", 0.5), "0.5"),
        ("uuid", b"0b7cf0c5-45b5-4c42-b2ac-c1b8f3a1ab06", "0b7cf0c5-45b5-4c42-b2ac-c1b8f3a1ab06"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_values_are_decoded(
    form: str, data: bytes, shown: str, cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.create_topic(f"as-{form}")
    cluster.produce(f"as-{form}", [data])
    assert read(cluster, capsys, "-e", "--value-format", form, topic=f"as-{form}").out == f"{shown}\n"
    [line] = read(cluster, capsys, "-e", "-J", "--value-format", form, topic=f"as-{form}").events
    assert line["value"] == (json.loads(shown) if form not in ("hex", "base64", "uuid") else shown)


@pytest.mark.parametrize("words", [("-p", "0,1"), ("-p", "1", "-p", "0"), ("-p", "1, 0,1")])
def test_several_partitions(
    words: tuple[str, ...], cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    everything = read(cluster, capsys, "-e").out
    assert sorted(read(cluster, capsys, "-e", *words).out) == sorted(everything)
    assert len(read(cluster, capsys, "-e", "-p", "1").out) < len(everything)


@pytest.fixture
def order(tmp_path: Path) -> tuple[str, Any]:
    """A message of a file of descriptors, as `--value-format` takes it, and its class."""
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    file.message_type.add(name="Other")
    message = file.message_type.add(name="Order")
    types = descriptor_pb2.FieldDescriptorProto
    message.field.add(name="who", number=1, type=types.TYPE_STRING, label=types.LABEL_OPTIONAL)
    message.field.add(name="amount_cents", number=2, type=types.TYPE_INT64, label=types.LABEL_OPTIONAL)
    message.field.add(
        name="at",
        number=3,
        type=types.TYPE_MESSAGE,
        type_name=".google.protobuf.Timestamp",
        label=types.LABEL_OPTIONAL,
    )
    timestamp = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(timestamp)
    path = tmp_path / "order.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[timestamp, file]).SerializeToString())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(timestamp)
    pool.Add(file)
    return f"{path}#shop.Order", message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_values_in_protobuf_alone_and_in_the_frame_of_a_registry(
    order: tuple[str, Any], cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, kind = order
    value = kind(who="ann", amount_cents=1 << 60)
    value.at.FromJsonString("2026-11-20T14:00:00Z")
    shown = {"who": "ann", "amount_cents": str(1 << 60), "at": "2026-11-20T14:00:00Z"}
    message = value.SerializeToString()
    cluster.create_topic("shop")
    cluster.produce("shop", [(message, b"\0\0\0\0\x11" + b"\x02\x02" + message)])
    forms = ("--key-format", f"protobuf:{schema}", "--value-format", f"protobuf:frame:17:{schema}")
    done = read(cluster, capsys, "-e", "-J", *forms, topic="shop")
    assert done.code == 0, done.err
    assert (done.events[0]["key"], done.events[0]["value"]) == (shown, shown)
    assert json.loads(read(cluster, capsys, "-e", *forms, topic="shop").out) == shown
    refused = read(cluster, capsys, "-e", "--value-format", f"protobuf:frame:18:{schema}", topic="shop")
    assert refused.code == 6
    assert "The value of the record in shop-0 at offset 0 is not protobuf" in refused.err


def test_what_is_no_message_ends_with_6(
    order: tuple[str, Any], cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.create_topic("broken")
    cluster.produce("broken", [b"\x0a\x7fshort"])
    done = read(cluster, capsys, "-e", "--value-format", f"protobuf:{order[0]}", topic="broken")
    assert (done.code, done.out) == (6, "")
    assert "short" not in done.err


def test_half_of_a_surrogate_pair_in_json_stays_an_escape(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON may have it, and UTF-8 has not: a producer must not end the command with it."""
    cluster.create_topic("halves")
    cluster.produce("halves", [rb'"\ud800"'])
    options = ("-e", "--value-format", "json")
    assert read(cluster, capsys, *options, topic="halves").out == '"\\ud800"\n'
    [line] = read(cluster, capsys, *options, "-J", topic="halves").events
    assert line["value"] == "\ud800"


def test_brackets_inside_brackets_are_printed_or_refused() -> None:
    """There is a depth that can just be read, and not be written."""
    form = RecordFormat(value="json")
    limit = sys.getrecursionlimit()
    for depth in range(limit - 100, limit + 10):
        data = b"[" * depth + b"]" * depth
        record = Record("deep", 0, 0, 0, TimestampType.CREATE_TIME, None, data, (), None, -1, len(data))
        for is_line in (True, False):
            with suppress(DecodeError):
                _ = form.json_line(record) if is_line else form.as_bytes(record, "value")


def test_bytes_that_are_typed_are_looked_for_and_printed(cluster: EmbeddedCluster) -> None:
    """Python gives bytes of an argument that are not UTF-8 as half surrogate pairs."""
    command = (*COMMAND, "consume", "odd", "-e", "-b", cluster.bootstrap_servers)
    words = (*command, "--grep", b"\xff", "-f", b"\xfe%s")
    done = subprocess.run(words, capture_output=True, timeout=PATIENCE, check=True)
    assert done.stdout == b"\xfe\xff\0"
    words = (*command, "-f", "%k", "-n", "1", "-Z", b"\xfd")
    done = subprocess.run(words, capture_output=True, timeout=PATIENCE, check=True)
    assert done.stdout == b"\xfd"


def test_a_value_of_another_format_ends_with_6_and_names_its_place(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    done = read(cluster, capsys, "-e", "-p", "1", "--value-format", "json")
    assert done.code == 6
    assert "The value of the record in orders-1 at offset 0 is not json." in done.err
    assert "v1" not in done.err


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["-o", "sometimes"], "--offset sometimes is not a place"),
        (["-o", "@2026-01-01T00:00"], "without a time zone"),
        (["-o", "@then"], "cannot be read"),
        (["-o", "@9999999999999999999"], "cannot be read"),
        (["-e", "--until", "3"], "--exit-at-end is not allowed with --until"),
        (["--until", "@9999999999999"], "is in the future"),
        (["-n", "0"], "--count must be 1 or more"),
        (["--grep", "("], "--grep ( is not a regular expression"),
        (["-f", "%q"], "--format has %q, which is no token"),
        (["-f", r"\q"], r"\q is no escape"),
        (["-f", "%s", "-J"], "--format is not allowed with --json"),
        (["-f", "%s", "-K", ":"], "--format is not allowed with --key-separator"),
        (["-g", "g", "-p", "0"], "--partition is not allowed with --group"),
        (["-g", "g", "-o", "5"], "groups reset g --help"),
        (["-p", "7"], "--partition 7: orders has the partitions 0 to 1"),
        (["--value-format", "xml"], "--value-format xml is none of text, json, hex"),
        (["--key-format", "hex:x"], "--key-format hex:x is none of text, json, hex"),
        (["--value-format", "protobuf"], "--value-format protobuf: is not FILE#MESSAGE"),
        (["--value-format", "protobuf:/none.desc#Order"], "'/none.desc' cannot be read"),
        (["-p", "0,x"], "--partition x is no partition"),
        (["-p", "0,"], "--partition without a number is no partition"),
        (["-p", "0,7"], "--partition 7: orders has the partitions 0 to 1"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_what_cannot_be_meant_ends_with_2(
    more: list[str], says: str, cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    done = read(cluster, capsys, *more)
    assert (done.code, done.out) == (2, ""), done.err
    assert says in done.err


def test_a_topic_that_is_not_there_is_not_created(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    for more in ([], ["-g", "misspelt"]):
        done = read(cluster, capsys, *more, topic="order")
        assert (done.code, done.out) == (5, "")
        assert "There is no topic 'order'" in done.err
        assert "Did you mean orders?" in done.err
    assert "order" not in cluster.state.topics


def test_it_ends_after_records_of_a_transaction(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last offset is that of the marker, which is no record."""
    cluster.create_topic("payments")
    producer = transaction(cluster.bootstrap_servers, TopicPartition("payments", 0), 3, "kept")
    producer.commit_transaction(20)
    producer.begin_transaction()
    producer.produce("payments", b"aborted", partition=0)
    producer.flush(20)
    producer.abort_transaction(20)
    done = read(cluster, capsys, "-e", "--isolation-level", "read_committed", topic="payments")
    assert (done.code, done.out) == (0, "x\n" * 3)
    assert len(read(cluster, capsys, "-e", topic="payments").out.split()) == 4


# --- groups


def test_a_group_continues_after_what_was_printed(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    first = read(cluster, capsys, "-g", "printing", "-n", "3")
    assert sum(committed(cluster, "printing").values()) == 3
    second = read(cluster, capsys, "-g", "printing", "-e")
    assert sorted((first.out + second.out).split()) == [f"v{number}" for number in range(10)]
    assert read(cluster, capsys, "-g", "printing", "-e").out == ""
    assert committed(cluster, "printing") == {TopicPartition("orders", 0): 5, TopicPartition("orders", 1): 5}


def test_a_group_without_commits_may_begin_at_the_end(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read(cluster, capsys, "-g", "late", "-e", "-o", "end") == (0, "", "")


def test_records_that_do_not_match_count_as_read(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read(cluster, capsys, "-g", "searching", "-e", "--grep", "v3").out == "v3\n"
    assert sum(committed(cluster, "searching").values()) == 10


def test_without_a_group_nothing_is_committed_whatever_a_file_says(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str], tmp_path: os.PathLike[str]
) -> None:
    file = os.path.join(tmp_path, "client.properties")
    with open(file, "w", encoding="utf-8") as out:
        out.write("group.id=billing\nauto.offset.reset=latest\nmax.poll.records=2\n")
    done = read(cluster, capsys, "-e", "--properties", file)
    assert len(done.out.split()) == 10
    assert "group.id of" in done.err
    assert not committed(cluster, "billing")


# --- pipes, signals, terminals


def start(cluster: EmbeddedCluster, *more: str, **streams: int) -> subprocess.Popen[bytes]:
    arguments = [*COMMAND, "consume", "endless", "-b", cluster.bootstrap_servers, *more]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    return subprocess.Popen(arguments, start_new_session=True, **streams)


def test_a_reader_that_closes_its_pipe_ends_it_quietly(cluster: EmbeddedCluster) -> None:
    with start(cluster, "-g", "piped") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline() == b"x" * 100 + b"\n"
        running.stdout.close()
        assert running.wait(PATIENCE) == 8
        assert running.stderr.read() == b""
    assert committed(cluster, "piped").get(TopicPartition("endless", 0), 0) < 5_000


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_it_and_commits_what_was_printed(
    number: signal.Signals, code: int, cluster: EmbeddedCluster
) -> None:
    group = f"stopped-by-{number.name}"
    with start(cluster, "-g", group) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        for _ in range(5_000):
            running.stdout.readline()
        running.send_signal(number)
        assert running.stdout.read() == b""
        assert (running.wait(PATIENCE), running.stderr.read()) == (code, b"")
    assert committed(cluster, group) == {TopicPartition("endless", 0): 5_000}


def test_a_terminal_is_not_steered_by_records_and_progress_is_shown_beside_a_file(
    cluster: EmbeddedCluster,
) -> None:
    def on_terminal(*more: str, **streams: int) -> bytes:
        ours, theirs = pty.openpty()
        arguments = [*COMMAND, "consume", "odd", "-e", "-f", r"%k\n", "-b", cluster.bootstrap_servers, *more]
        subprocess.run(
            arguments, timeout=PATIENCE, check=True, **{"stdout": theirs, "stderr": theirs, **streams}
        )
        shown = os.read(ours, 65_536)
        os.close(theirs)
        os.close(ours)
        return shown

    assert on_terminal() == b"\r\n\\x1b[31m\r\n"
    assert b"2 records in " in on_terminal(stdout=subprocess.DEVNULL)


# --- the schema registry


@pytest.mark.filterwarnings("ignore:The httpx module is deprecated")
def test_values_and_keys_of_a_registry_are_json(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with registry_server() as server:
        written = avro(server, VALUE)
        cluster.create_topic("framed")
        cluster.produce("framed", [(written, written), (None, None)])
        done = read(cluster, capsys, "-e", "--registry", server.url, topic="framed")
        first, second = done.out.split("\n")[:2]
        as_json = {"id": 7, "amount": "12.50", "at": "2026-01-31T08:00:00+00:00", "tags": ["new", "gift"]}
        assert (json.loads(first), second) == (as_json, "")
        words = ("--registry", server.url, "--key-format", "registry", "--value-format", "hex")
        both = read(cluster, capsys, "-e", "-J", *words, topic="framed").events[0]
        assert (both["key"], both["value"]) == (as_json, written.hex())
        bad = read(cluster, capsys, "-e", "--registry", server.url)
        assert bad.code == 6
        assert "is not framed with an id that the registry has" in bad.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--value-format", "registry"], "--registry URL belongs to --value-format registry"),
        (["--registry", "http://127.0.0.1:1", "--value-format", "text"], "--registry URL belongs to"),
        (["--registry-auth-env", "X"], "--registry-auth-env belongs to --registry URL"),
        (["--registry", "http://user:secret@127.0.0.1:1"], "with no user or password in it"),
    ],
)
def test_a_registry_that_cannot_be_meant(
    words: list[str], says: str, cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    done = read(cluster, capsys, "-e", *words)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "secret" not in done.err


def test_a_registry_that_does_not_answer_ends_with_3(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.create_topic("framed-elsewhere")
    cluster.produce("framed-elsewhere", [b"\0" + (987_654).to_bytes(4, "big") + b"x"])
    done = read(cluster, capsys, "-e", "--registry", "http://127.0.0.1:1", topic="framed-elsewhere")
    assert (done.code, done.out) == (3, "")
    assert "127.0.0.1:1" in done.err

"""`kclient produce`: lines become records, which other clients and kclient itself read."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from kclient.embedded import EmbeddedCluster
from tests.cli.support import COMMAND, PATIENCE, Done, call


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(2, config={"auto.create.topics.enable": "true"}) as cluster:
        yield cluster


class Producing:
    """Runs the command with a topic of its own and this standard input."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        topic: str,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.topic = topic
        self._cluster = cluster
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def write(self, data: bytes, *words: str, topic: str | None = None) -> Done:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))
        servers = self._cluster.bootstrap_servers
        return call(self._capsys, "produce", topic or self.topic, "-b", servers, *words)

    def consume(self, *words: str) -> Done:
        return call(self._capsys, "consume", self.topic, "-e", "-b", self._cluster.bootstrap_servers, *words)


@pytest.fixture
def producing(
    cluster: EmbeddedCluster,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Producing:
    topic = f"topic-{abs(hash(request.node.nodeid))}"
    cluster.create_topic(topic, 3)
    return Producing(cluster, topic, capsys, monkeypatch)


def records(producing: Producing) -> list[tuple[str | None, str | None]]:
    return sorted((one["key"] or "", one["value"]) for one in producing.consume("-J").events)


def test_each_line_is_a_record(producing: Producing) -> None:
    done = producing.write(b"one\ntwo\r\nthree", "--json")
    assert done.code == 0, done.err
    [report] = done.events
    assert (report["records"], sum(report["partitions"].values())) == (3, 3)
    assert records(producing) == [("", "one"), ("", "three"), ("", "two")]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_another_client_reads_what_was_written(
    codec: str, producing: Producing, cluster: EmbeddedCluster
) -> None:
    assert producing.write(b"k:v\n" * 2_500, "-K", ":", "--compression", codec, "-p", "1").code == 0
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "other"}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(producing.topic, 1, 0)])
    found: list[tuple[bytes | None, bytes | None]] = []
    while len(found) < 2_500:
        found += [(one.key(), one.value()) for one in consumer.consume(500, 10) if one.error() is None]
    consumer.close()
    assert found == [(b"k", b"v")] * 2_500


def test_keys_headers_and_null(producing: Producing) -> None:
    assert producing.write(b"a\tNULL\nNULL\tb:c\n", "-K", r"\t", "-Z", "NULL", "-H", "h=x=y").code == 0
    found = {one["key"]: one for one in producing.consume("-J").events}
    assert found["a"]["value"] is None
    assert found[None]["value"] == "b:c"
    assert found["a"]["headers"] == [{"key": "h", "value": "x=y"}]
    assert producing.write(b"second\n", "-k", "a").code == 0
    partitions = {one["partition"] for one in producing.consume("-J").events if one["key"] == "a"}
    assert len(partitions) == 1


def test_what_consume_prints_can_be_written_again(producing: Producing, cluster: EmbeddedCluster) -> None:
    values = [("k", b"\xff\x00"), (None, "text"), ("n", None), ("j", '{"a":1}')]
    cluster.create_topic(f"{producing.topic}-from")
    cluster.produce(f"{producing.topic}-from", values)
    source = Producing(cluster, f"{producing.topic}-from", producing._capsys, producing._monkeypatch)
    lines = source.consume("-J")
    assert producing.write(lines.out.encode(), "-J").code == 0

    def content(done: Done) -> list[str]:
        kept = ("key", "value", "headers", "timestamp")
        return sorted(repr({key: one[key] for key in kept}) for one in done.events)

    assert content(producing.consume("-J")) == content(lines)


def test_an_object_that_is_a_value_is_written_as_json(producing: Producing) -> None:
    assert producing.write(b'{"value": {"amount": 3}, "key": 7}\n', "-J").code == 0
    assert records(producing) == [("7", '{"amount":3}')]


def test_half_of_a_surrogate_pair_inside_an_object_is_written_as_its_escape(producing: Producing) -> None:
    assert producing.write(b'{"value": {"a": "\\ud800"}}\n', "-J").code == 0
    assert records(producing) == [("", r'{"a":"\ud800"}')]


def test_bytes_that_are_typed_are_written_unchanged(producing: Producing) -> None:
    """Python gives bytes of an argument that are not UTF-8 as half surrogate pairs."""
    assert producing.write(b"a\xffb\n", "-K", "\udcff", "-H", "h=\udcfe", "-Z", "\udcff").code == 0
    assert producing.write(b"c\xfed\n", "-K", r"\xfe").code == 0
    assert records(producing) == [("a", "b"), ("c", "d")]
    first, second = sorted(producing.consume("-J").events, key=lambda one: str(one["key"]))
    assert (first["headers"], second["headers"]) == ([{"key": "h", "value": {"base64": "/g=="}}], [])


@pytest.mark.parametrize(
    ("data", "words", "says"),
    [
        (b"k:v\nnone\nk:w\n", ["-K", ":"], "a line has no ':' between key and value"),
        (b'{"value": "v"}\nnone\n', ["-J"], "a line is not JSON"),
        (b'{"value": "v"}\n[1]\n', ["-J"], "not an object"),
        (b'{"value": "v"}\n{"vaule": "w"}\n', ["-J"], "the unknown key 'vaule'"),
        (b'{"value": "v"}\n{"value": {"base64": "?"}}\n', ["-J"], "a base64 that is none"),
        (b'{"value": "v"}\n{"value": "\\ud800"}\n', ["-J"], "half of a surrogate pair"),
        (b'{"value": "v"}\n{"headers": 5}\n', ["-J"], "headers or a timestamp that are none"),
        (
            b'{"value": "v"}\n{"headers": [{"key": "\\ud800"}]}\n',
            ["-J"],
            "headers or a timestamp that are none",
        ),
    ],
)
def test_a_line_that_is_no_record_ends_it_after_those_before(
    data: bytes, words: list[str], says: str, producing: Producing
) -> None:
    done = producing.write(data, *words)
    assert done.code == 2
    assert says in done.err
    assert [value for _, value in records(producing)] == ["v"]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["-J", "-K", ":"], 2, "--from-json is not allowed with"),
        (["-k", "a", "-K", ":"], 2, "--key-separator is not allowed with --key"),
        (["-H", "h"], 2, "--header h is not NAME=VALUE"),
        (["-H", "\udcff=1"], 2, "a name in UTF-8"),
        (["-p", "3"], 2, "has the partitions 0 to 2"),
    ],
)
def test_what_cannot_be_meant_writes_nothing(
    words: list[str], code: int, says: str, producing: Producing
) -> None:
    done = producing.write(b"x\n", *words)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert records(producing) == []


def test_a_topic_that_is_not_there_is_not_created(producing: Producing, cluster: EmbeddedCluster) -> None:
    done = producing.write(b"x\n", topic="misspelt")
    assert done.code == 5
    assert "misspelt" not in cluster.state.topics


def test_a_topic_that_no_cluster_can_have_is_an_error_of_the_broker(producing: Producing) -> None:
    done = producing.write(b"x\n", topic="not a topic")
    assert "KC-450" in done.err
    assert "INVALID_TOPIC_EXCEPTION" in done.err


def test_a_leader_that_moved_is_found_and_nothing_is_written_twice(
    producing: Producing, cluster: EmbeddedCluster
) -> None:
    rule = cluster.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", times=2)
    assert producing.write(b"x\n", "-p", "0").code == 0
    cluster.lift(rule)
    assert records(producing) == [("", "x")]


def test_an_error_that_leaves_it_open_ends_it(producing: Producing, cluster: EmbeddedCluster) -> None:
    rule = cluster.fail("Produce", error="NOT_ENOUGH_REPLICAS_AFTER_APPEND", times=1)
    done = producing.write(b"x\n", "-p", "0")
    cluster.lift(rule)
    assert done.code == 1
    assert "NOT_ENOUGH_REPLICAS_AFTER_APPEND" in done.err


def test_a_missing_permission_is_write(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedCluster(topics={"orders": 1}) as cluster:
        cluster.deny("User:ANONYMOUS", "WRITE", "Topic:orders")
        done = Producing(cluster, "orders", capsys, monkeypatch).write(b"x\n")
    assert done.code == 4
    assert "Grant it WRITE on Topic:orders" in done.err


def test_lines_are_sent_as_they_come(producing: Producing, cluster: EmbeddedCluster) -> None:
    arguments = [*COMMAND, "produce", producing.topic, "-p", "0", "-b", cluster.bootstrap_servers]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE) as running:
        assert running.stdin is not None
        running.stdin.write(b"early\n")
        running.stdin.flush()
        done = producing.consume("-n", "1")  # waits for the record, since the end was then none
        while not done.out:
            done = producing.consume("-n", "1")
        assert done.out == "early\n"
        assert running.poll() is None
        running.stdin.close()
        assert running.wait(PATIENCE) == 0

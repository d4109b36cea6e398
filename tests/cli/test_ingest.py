"""`kclient ingest` without Spark against the embedded cluster: its output, its error texts and its exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kclient import Consumer
from kclient.cli.exit_codes import exit_code
from kclient.embedded import EmbeddedCluster
from kclient.errors import DataLossError, DecodeError, NoOffsetError, SinkError
from kclient.spark.sink import manifest
from kclient.types import TopicPartition
from tests.cli.support import Done, call, job, run

ROWS = 600
LIMIT = "250"


class Landed(NamedTuple):
    """A job that has run."""

    cluster: EmbeddedCluster
    folder: Path
    done: Done
    events: list[dict]  # type: ignore[type-arg]


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 2, "secret": 1, "bad": 1, "short": 1}) as cluster:
        for partition in (0, 1):
            cluster.produce("orders", ["x" * 100] * (ROWS // 2), partition=partition)
        cluster.produce("bad", ['{"a": 1}', "no json", '{"a": 2}'])
        cluster.produce("short", ["x"] * 10)
        yield cluster


@pytest.fixture(scope="module")
def landed(cluster: EmbeddedCluster, tmp_path_factory: pytest.TempPathFactory) -> Landed:
    folder = tmp_path_factory.mktemp("landed")
    file = folder / "metrics.jsonl"
    more = ["--group", "lake", "--max-per-trigger", LIMIT, "--metrics", f"jsonl:{file}"]
    done = run(*job(cluster.bootstrap_servers, folder, *more), FORCE_COLOR="", NO_COLOR="1")
    return Landed(cluster, folder, done, [json.loads(line) for line in file.read_text().splitlines()])


@pytest.mark.spec("SP-83", "SP-84", "SP-85")
def test_people_get_a_line_for_the_plan_for_each_batch_and_for_the_end(landed: Landed) -> None:
    assert (landed.done.code, landed.done.out) == (0, "")
    plan, *batches, end = landed.done.err.splitlines()
    assert plan.startswith("plan  orders  2 partitions  backlog 600 rows (about ")
    assert "start orders 0:0 1:0" in plan
    assert plan.endswith("checkpoint new  group lake")
    assert [line.split("  ")[0] for line in batches] == ["batch 0", "batch 1", "batch 2"]
    assert "rows/s" in batches[0]
    assert "lag 0 (0.0 s)" in batches[-1]
    assert end.startswith("drained  3 batches  600 rows")
    assert end.endswith("lag 0  group committed")
    assert "\x1b" not in landed.done.err


@pytest.mark.spec("SP-82", "SP-84")
def test_machines_are_reported_the_same(landed: Landed) -> None:
    plan, *batches, finished = landed.events
    assert [event["event"] for event in landed.events] == ["plan", "batch", "batch", "batch", "finished"]
    assert (plan["backlog_rows"], plan["checkpoint"], plan["group"]) == (ROWS, "new", "lake")
    assert sum(batch["rows"] for batch in batches) == ROWS == manifest.count(landed.folder / "raw")
    for batch, following in pairwise(batches):
        assert batch["end"] == following["start"]
    assert batches[-1]["end"] == finished["end"] == {"orders": {"0": 300, "1": 300}}
    assert (finished["ended"], finished["total_rows"], finished["lag_records"]) == ("drained", ROWS, 0)
    times = [event["time_ms"] for event in landed.events]
    assert times == sorted(times)


@pytest.mark.spec("SP-68")
def test_the_group_shows_no_lag(landed: Landed, capsys: pytest.CaptureFixture[str]) -> None:
    [report] = call(capsys, "lag", "lake", "--json", "-b", landed.cluster.bootstrap_servers).events
    assert report["total_lag"] == 0


@pytest.mark.spec("SP-83")
def test_the_same_command_again_continues(landed: Landed, capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--group", "lake", "--max-per-trigger", LIMIT, "--json")
    done = call(capsys, *job(landed.cluster.bootstrap_servers, landed.folder, *more))
    plan, finished = done.events
    assert (done.code, done.err) == (0, "")
    assert (plan["checkpoint"], plan["next_batch"], plan["again"], plan["backlog_rows"]) == (
        "resume",
        3,
        False,
        0,
    )
    assert (finished["batches"], finished["total_rows"]) == (0, 0)


@pytest.mark.spec("SP-83")
def test_a_dry_run_prints_the_plan_and_leaves_nothing(
    cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call(capsys, *job(cluster.bootstrap_servers, tmp_path / "new", "--dry-run"))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("plan  orders  2 partitions  backlog 600 rows")
    [plan] = call(capsys, *job(cluster.bootstrap_servers, tmp_path / "new", "--dry-run", "--json")).events
    assert (plan["event"], plan["backlog_rows"]) == ("plan", ROWS)
    assert not (tmp_path / "new").exists()


# --- without Spark


def test_without_pyspark_nothing_is_claimed_and_the_direct_engine_lands(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    (tmp_path / "pyspark.py").write_text("raise ModuleNotFoundError('gone', name='pyspark')")
    arguments = job(cluster.bootstrap_servers, tmp_path)
    engine = arguments.index("direct")
    arguments[engine] = "spark"
    done = run(*arguments, PYTHONPATH=f"{tmp_path}:.")
    assert (done.code, done.out) == (2, "")
    assert "pip install 'kclient-kafka[spark]', or give --engine direct" in done.err
    assert not (tmp_path / "checkpoint" / "kclient" / "job.json").exists()
    arguments[engine] = "direct"
    assert run(*arguments, PYTHONPATH=f"{tmp_path}:.").code == 0
    assert manifest.count(tmp_path / "raw") == ROWS


def test_where_spark_does_not_start_the_direct_engine_may_continue(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    """The advice that is given must be one that can be taken: no batch has begun, so another engine may."""
    arguments = job(cluster.bootstrap_servers, tmp_path)
    engine = arguments.index("direct")
    arguments[engine] = "spark"
    done = run(*arguments, JAVA_HOME=str(tmp_path))
    assert done.code == 2, done.err
    assert "or give --engine direct" in done.err
    arguments[engine] = "direct"
    assert run(*arguments).code == 0
    assert manifest.count(tmp_path / "raw") == ROWS
    arguments[engine] = "spark"
    refused = run(*arguments)
    assert (refused.code, "its engine is 'direct', not 'spark'" in refused.err) == (2, True)


# --- status


@pytest.mark.spec("SP-89")
def test_status_reads_the_checkpoint_and_with_bootstrap_servers_the_ends(
    landed: Landed, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = str(landed.folder / "checkpoint")
    done = call(capsys, "ingest", "status", "--checkpoint", checkpoint)
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert (done.code, done.err) == (0, "")
    assert lines == [
        f"checkpoint {checkpoint} next batch 3 sink parquet:{landed.folder / 'raw'} rows 600 engine direct",
        "TOPIC PARTITION NEXT END LAG",
        "orders 0 300 - -",
        "orders 1 300 - -",
        "total lag not asked for: give -b HOST:PORT",
    ]
    with_ends = call(
        capsys, "ingest", "status", "--checkpoint", checkpoint, "-b", landed.cluster.bootstrap_servers
    )
    assert " ".join(with_ends.out.splitlines()[2].split()) == "orders 0 300 300 0"
    assert with_ends.out.endswith("total lag 0\n")


@pytest.mark.spec("SP-89")
def test_status_counts_a_partition_that_the_job_has_not_seen_yet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with EmbeddedCluster(topics={"orders": 1}) as cluster:
        cluster.produce("orders", ["x"] * 4)
        assert call(capsys, *job(cluster.bootstrap_servers, tmp_path)).code == 0
        cluster.add_partitions("orders", 2)
        cluster.produce("orders", ["x"] * 5, partition=1)
        where = ("--checkpoint", str(tmp_path / "checkpoint"), "-b", cluster.bootstrap_servers)
        [found] = call(capsys, "ingest", "status", *where, "--json").events
    assert found["lag_records"] == 5
    assert found["partitions"][1] == {"topic": "orders", "partition": 1, "next": 0, "end": 5}


@pytest.mark.spec("SP-89")
def test_status_counts_a_topic_that_an_expression_of_the_job_matches_by_now(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with EmbeddedCluster(topics={"orders": 1, "clicks.a": 1}) as cluster:
        arguments = job(cluster.bootstrap_servers, tmp_path, "--json", topic=r"orders,clicks\..*")
        assert call(capsys, *arguments).code == 0
        cluster.create_topic("clicks.b", 1)
        cluster.create_topic("clicks", 1)  # what the expression does not match
        cluster.produce("clicks.b", ["x"] * 7)
        where = ("--checkpoint", str(tmp_path / "checkpoint"), "-b", cluster.bootstrap_servers)
        [found] = call(capsys, "ingest", "status", *where, "--json").events
        landed = call(capsys, *arguments).events[-1]
    assert [one["topic"] for one in found["partitions"]] == ["clicks.a", "clicks.b", "orders"]
    assert found["lag_records"] == landed["total_rows"] == 7


@pytest.mark.spec("SP-89")
def test_status_of_another_cluster_is_refused_and_makes_no_topic_there(
    landed: Landed, capsys: pytest.CaptureFixture[str]
) -> None:
    with EmbeddedCluster(config={"auto.create.topics.enable": True}) as other:
        where = ("--checkpoint", str(landed.folder / "checkpoint"), "-b", other.bootstrap_servers)
        done = call(capsys, "ingest", "status", *where)
        with Consumer(bootstrap_servers=other.bootstrap_servers) as consumer:
            assert consumer.list_topics() == {}
    assert (done.code, done.out) == (2, "")
    assert f"its cluster id is '{landed.events[0]['cluster_id']}', not 'embedded-" in done.err


@pytest.mark.spec("SP-89")
def test_status_of_a_topic_that_is_gone_knows_no_lag_and_makes_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with EmbeddedCluster(topics={"orders": 1}, config={"auto.create.topics.enable": True}) as cluster:
        cluster.produce("orders", ["x"] * 4)
        assert call(capsys, *job(cluster.bootstrap_servers, tmp_path)).code == 0
        cluster.delete_topic("orders")
        where = ("--checkpoint", str(tmp_path / "checkpoint"), "-b", cluster.bootstrap_servers)
        [found] = call(capsys, "ingest", "status", *where, "--json").events
        output = call(capsys, "ingest", "status", *where).out
        cluster.create_topic("orders", 1)
        anew = call(capsys, "ingest", "status", *where)
    assert found["lag_records"] is None
    assert found["partitions"] == [{"topic": "orders", "partition": 0, "next": 4, "end": None}]
    assert output.endswith("total lag unknown: no end at or after NEXT of orders-0\n")
    assert (anew.code, "topic orders was deleted and recreated since" in anew.err) == (2, True)


@pytest.mark.spec("SP-89")
def test_status_for_machines(landed: Landed, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = str(landed.folder / "checkpoint")
    [found] = call(capsys, "ingest", "status", "--checkpoint", checkpoint, "--json").events
    assert (found["next_batch"], found["again"], found["rows"], found["lag_records"]) == (
        3,
        False,
        ROWS,
        None,
    )
    assert found["partitions"][1] == {"topic": "orders", "partition": 1, "next": 300, "end": None}
    assert " ".join(found) == (
        "checkpoint cluster_id sink engine next_batch again rows job table_batch lag_records partitions"
    )


def test_status_needs_neither_spark_nor_a_cluster(landed: Landed, tmp_path: Path) -> None:
    (tmp_path / "pyspark.py").write_text("raise ImportError")
    checkpoint = str(landed.folder / "checkpoint")
    done = run("ingest", "status", "--checkpoint", checkpoint, PYTHONPATH=f"{tmp_path}:.")
    assert (done.code, done.err) == (0, "")


def test_status_where_the_sink_is_not_mounted_knows_no_rows(
    cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(capsys, *job(cluster.bootstrap_servers, tmp_path)).code == 0
    (tmp_path / "raw").rename(tmp_path / "elsewhere")
    [found] = call(capsys, "ingest", "status", "--checkpoint", str(tmp_path / "checkpoint"), "--json").events
    assert (found["next_batch"], found["rows"]) == (1, None)


def test_status_of_what_is_no_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "ingest", "status", "--checkpoint", str(tmp_path))
    assert (done.code, done.out) == (2, "")
    assert "holds no checkpoint of an ingest job" in done.err


# --- exit codes


def failed(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> tuple[Done, dict]:  # type: ignore[type-arg]
    """A job that fails: its output, and its last event."""
    done = call(capsys, *arguments, "--json")
    return done, done.events[-1]


@pytest.mark.spec("SP-85")
def test_2_for_a_checkpoint_of_another_job(landed: Landed, capsys: pytest.CaptureFixture[str]) -> None:
    done, event = failed(capsys, job(landed.cluster.bootstrap_servers, landed.folder, topic="short"))
    assert (done.code, event["event"], event["exit_code"], event["code"]) == (2, "failed", 2, "KC-601")
    assert "belongs to another job: its topics are" in done.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--format", "json", "--schema", "a map<string, int>"), "--schema: field a is a map"),
        (("--format", "avro", "--schema", "{}"), "--schema is not an Avro schema"),
        (
            ("--format", "json", "--schema", "registry:https://h:1"),
            "--format=json needs --schema, the schema",
        ),
        (("--spark-log", "x.log"), "--spark-log is for --engine spark"),
        (("--set", "group.id=10"), "group.id repeats --group"),
    ],
)
def test_2_and_the_name_of_the_option_that_was_typed(
    more: tuple[str, ...],
    message: str,
    cluster: EmbeddedCluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = call(capsys, *job(cluster.bootstrap_servers, tmp_path, *more, "--dry-run"))
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert "value" not in done.err


def test_what_a_shared_file_says_for_consumers_is_left_out_and_named(
    cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "org.apache.kafka.common.serialization.StringDeserializer"
    lines = {"auto.offset.reset": "latest", "key.deserializer": text, "value.deserializer": text}
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    arguments = job(cluster.bootstrap_servers, tmp_path, "--properties", str(file), topic="short")
    done = call(capsys, *arguments)
    assert done.code == 0
    assert [line for line in done.err.splitlines() if "is left out" in line] == [
        line for line in done.err.splitlines() if str(file) in line
    ]
    assert all(f"{key} of {file} is left out" in done.err for key in lines)
    assert call(capsys, *arguments, "--set", "auto.offset.reset=latest").code == 2


def test_the_group_of_a_shared_file_is_left_out_and_reported_once(
    cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("group.id=billing\nclient.id=ours\n")
    arguments = job(cluster.bootstrap_servers, tmp_path, "--properties", str(file), "--json", topic="short")
    done = call(capsys, *arguments)
    assert (done.code, done.events[0]["group"]) == (0, None)
    assert done.err.count("\n") == 1
    assert f"group.id of {file} is left out" in done.err
    assert call(capsys, *arguments, "--set", "group.id=billing").code == 2
    assert call(capsys, "lag", "billing", "-b", cluster.bootstrap_servers).code == 5


def test_2_for_a_group_without_a_commit_and_the_advice_can_be_followed(
    cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = job(cluster.bootstrap_servers, tmp_path, "--start", "group", "--group", "none", topic="short")
    done, event = failed(capsys, arguments)
    assert (done.code, event["error"]) == (2, "ConfigError")
    assert "--start=group finds no commit for short-0." in done.err
    assert "or give --options startingOffsets.fallback=earliest or latest." in done.err
    assert call(capsys, *arguments, "--options", "startingOffsets.fallback=earliest", "--dry-run").code == 0


@pytest.mark.parametrize("metrics", ["jsonl", "jsonl:", "csv:x", "prometheus:x", "prometheus:99999"])
def test_2_for_metrics_that_are_none(
    metrics: str, cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call(capsys, *job(cluster.bootstrap_servers, tmp_path, "--metrics", metrics))
    assert (done.code, done.out) == (2, "")
    assert "is neither jsonl:FILE nor prometheus:[HOST:]PORT" in done.err


@pytest.mark.spec("SP-85")
def test_3_where_nothing_listens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done, event = failed(capsys, job("127.0.0.1:1", tmp_path))
    assert (done.code, event["exit_code"]) == (3, 3)
    assert "127.0.0.1:1" in done.err


@pytest.mark.spec("SP-85")
def test_4_for_a_topic_that_may_not_be_read(
    cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.deny("User:ANONYMOUS", "READ", "Topic:secret")
    cluster.produce("secret", ["x"])
    done, event = failed(capsys, job(cluster.bootstrap_servers, tmp_path, topic="secret"))
    assert (done.code, event["error"]) == (4, "TopicAuthorizationError")


@pytest.mark.spec("SP-85")
def test_5_for_a_topic_that_does_not_exist(
    cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done, event = failed(capsys, job(cluster.bootstrap_servers, tmp_path, topic="ordres"))
    assert (done.code, event["error"]) == (5, "UnknownTopicError")
    assert "subscribe" not in done.err


@pytest.mark.spec("SP-83", "SP-85")
@pytest.mark.parametrize("more", [(), ("--backfill",)])
@pytest.mark.parametrize("topics", ["foo.*", "orders,foo.*", "ordres,sh.*"])
def test_5_for_an_expression_that_matches_nothing_and_no_checkpoint_is_bound_to_it(
    topics: str,
    more: tuple[str, ...],
    cluster: EmbeddedCluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    wrong = next(name for name in topics.split(",") if name in ("foo.*", "ordres"))
    done = call(capsys, *job(cluster.bootstrap_servers, tmp_path, *more, topic=topics))
    assert (done.code, f"No topic matches {wrong}" in done.err) == (5, True)
    assert call(capsys, *job(cluster.bootstrap_servers, tmp_path)).code == 0


@pytest.mark.spec("SP-85", "SP-76")
def test_6_for_a_value_that_cannot_be_decoded(
    cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = job(cluster.bootstrap_servers, tmp_path, "--format", "json", "--schema", "a int", topic="bad")
    done, event = failed(capsys, arguments)
    assert (done.code, event["exit_code"], event["error"]) == (6, 6, "DecodeError")
    assert "give --on-bad-record null, or dlq with --dlq" in done.err
    assert "badRecords" not in done.err
    assert "no json" not in done.err + done.out  # a value is never printed


@pytest.mark.spec("SP-76", "SP-88")
def test_0_with_dead_letters_that_are_counted(
    cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = (
        "--format",
        "json",
        "--schema",
        "a int",
        "--on-bad-record",
        "dlq",
        "--dlq",
        f"parquet:{tmp_path / 'dlq'}",
    )
    done = call(capsys, *job(cluster.bootstrap_servers, tmp_path, *more, "--json", topic="bad"))
    assert done.code == 0
    assert (done.events[-1]["total_rows"], done.events[-1]["total_bad_records"]) == (2, 1)
    assert manifest.count(tmp_path / "dlq") == 1


@pytest.mark.spec("SP-85")
def test_6_for_records_that_are_gone(
    cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = job(cluster.bootstrap_servers, tmp_path, topic="short")
    assert call(capsys, *arguments).code == 0
    cluster.produce("short", ["x"] * 10)
    cluster.delete_records("short", 0, before=15)
    done, event = failed(capsys, arguments)
    assert (done.code, event["error"]) == (6, "DataLossError")
    assert "do without the rest give --accept-data-loss." in done.err
    assert event["text"] in done.err
    accepted = call(capsys, *arguments, "--accept-data-loss", "--json")
    assert (accepted.code, accepted.events[-1]["total_rows"]) == (0, 5)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"--topics": "ordres"}, 5),
        ({"-b": "127.0.0.1:1"}, 3),
        ({"--topics": "short"}, 2),
        ({"--backfill": "--no-headers", "-b": "127.0.0.1:1"}, 3),  # two flags
    ],
)
def test_what_is_refused_leaves_no_empty_sink(
    changed: dict[str, str],
    code: int,
    cluster: EmbeddedCluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = job(cluster.bootstrap_servers, tmp_path)
    if code == 2:  # its checkpoint is another job's
        assert call(capsys, *arguments).code == 0
    given = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    given |= {"--sink": f"parquet:{tmp_path / 'other'}", **changed}
    done = call(capsys, "ingest", *(word for pair in given.items() for word in pair))
    assert done.code == code, done.err
    with pytest.raises(SinkError, match="has no _manifest"):
        manifest.files(tmp_path / "other")
    assert (tmp_path / "checkpoint").exists() == (code == 2)


@pytest.mark.spec("SP-85")
@pytest.mark.parametrize("where", ["sink", "checkpoint", "metrics"])
def test_8_for_what_cannot_be_written(
    where: str, cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no directory")
    below = tmp_path / "file" / "x"
    arguments = job(cluster.bootstrap_servers, tmp_path, "--metrics", f"jsonl:{tmp_path / 'metrics'}")
    place = arguments.index(f"--{where}") + 1
    arguments[place] = (
        arguments[place].partition(":")[0] + f":{below}" if where != "checkpoint" else str(below)
    )
    done = call(capsys, *arguments)
    assert done.code == 8, done.err
    assert str(below) in done.err


@pytest.mark.spec("SP-85")
def test_8_for_a_sink_that_cannot_be_read(
    cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that is too long, because nothing is forbidden to tests that root runs."""
    sink = f"parquet:{tmp_path / ('x' * 300)}"
    arguments = job(cluster.bootstrap_servers, tmp_path)
    arguments[arguments.index("--sink") + 1] = sink
    for command in (arguments, ["ingest", "gc", "--sink", sink]):
        done = call(capsys, *command)
        assert (done.code, done.out) == (8, ""), done.err
        assert re.search(r": Reading /\S+/_manifest failed: File name too long\. ", done.err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("SP-85")
@pytest.mark.parametrize("place", ["raw/_manifest", "checkpoint/offsets", "checkpoint/kclient/job.json"])
def test_8_for_a_status_of_what_cannot_be_read(
    place: str, cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be read is not taken for empty."""
    assert call(capsys, *job(cluster.bootstrap_servers, tmp_path)).code == 0
    (tmp_path / place).rename(tmp_path / "away")
    (tmp_path / place).symlink_to(tmp_path / place)
    done = call(capsys, "ingest", "status", "--checkpoint", str(tmp_path / "checkpoint"))
    assert (done.code, done.out) == (8, ""), done.err
    assert f": Reading {tmp_path / place} failed: Too many levels of symbolic links. " in done.err


@pytest.mark.spec("SP-85")
@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("offsets/0", b""),
        ("offsets/0", b"\xff\xfe"),
        ("offsets/0", b"v1\n{}\n[1,2]"),
        ("kclient/job.json", b"[]"),
        ("kclient/job.json", b"[" * 100_000),
        ("offsets/0", b"v1\n{}\n" + b"[" * 100_000),
        ("kclient/job.json", {"sink": None}),
        ("kclient/job.json", {"topics": "orders"}),
        ("kclient/job.json", {"topics": [1]}),
        ("kclient/job.json", {"topic_ids": []}),
        ("kclient/job.json", {"topic_ids": {"orders": 1}}),
    ],
)
def test_8_for_a_checkpoint_that_was_damaged(
    file: str,
    content: bytes | dict[str, Any],
    cluster: EmbeddedCluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = job(cluster.bootstrap_servers, tmp_path)
    assert call(capsys, *arguments).code == 0
    path = tmp_path / "checkpoint" / file
    path.write_bytes(content if isinstance(content, bytes) else edited(path, content))
    for command in (arguments, ["ingest", "status", "--checkpoint", str(tmp_path / "checkpoint")]):
        done = call(capsys, *command)
        assert (done.code, done.out) == (8, ""), done.err
        assert f"The checkpoint's file {path} cannot be understood: " in done.err


def edited(path: Path, changed: dict[str, Any]) -> bytes:
    """A file of JSON with other values."""
    return json.dumps({**json.loads(path.read_bytes()), **changed}).encode()


@pytest.mark.parametrize(
    ("error", "code"),
    [(DataLossError("x"), 6), (DecodeError("x"), 6), (SinkError("x"), 8), (NoOffsetError("x"), 2)],
)
def test_errors_of_jobs_have_their_numbers(error: Exception, code: int) -> None:
    assert exit_code(error) == code  # type: ignore[arg-type]


def test_the_start_may_be_said_by_a_file(
    cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "start.json"
    file.write_text('{"orders": {"0": 290, "1": 0}}')
    arguments = job(cluster.bootstrap_servers, tmp_path, "--start", str(file), "--dry-run", "--json")
    [plan] = call(capsys, *arguments).events
    starts = {TopicPartition(one["topic"], one["partition"]): one["start"] for one in plan["partitions"]}
    assert starts == {TopicPartition("orders", 0): 290, TopicPartition("orders", 1): 0}

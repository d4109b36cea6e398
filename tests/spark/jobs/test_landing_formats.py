"""Values decoded on their way, records that cannot be, and what lands beside a job: backfills, dead letters."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError, DecodeError, SinkError
from kclient.spark.ingest import run as ingest
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.ingest.stop_signals import StopRequest
from kclient.spark.sink import manifest
from kclient.spark.sink.manifest import gc
from tests.spark.jobs import killing
from tests.spark.jobs.support import (
    RecordingReporter,
    Stopping,
    assert_exactly_once,
    fill,
    given,
    offsets_file,
    rows,
    run,
)
from tests.spark.test_decoding_protobuf import flights, message_class, written_to

pytestmark = pytest.mark.timeout(90)

JSON: dict[str, Any] = {"format": "json", "schema": "id BIGINT, name STRING", "partition_by": "topic"}


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 1}) as running:
        yield running


def landed(sink: Path) -> list[dict[str, Any]]:
    """The rows that count, in the order of offsets, without the time."""
    found = [
        row for path in manifest.files(sink) for row in pq.read_table(path, partitioning=None).to_pylist()
    ]
    return sorted(
        ({name: value for name, value in row.items() if name != "_timestamp"} for row in found),
        key=lambda row: row["_offset"],
    )


def publish(cluster: EmbeddedCluster) -> None:
    """A good record, one that is no JSON, one whose id is no number, a deletion, a good one."""
    values = [b'{"id": 1, "name": "one"}', b"nonsense", b'{"id": "two", "name": "x"}', None, b'{"id": 5}']
    cluster.produce("orders", [(b"k%d" % n, value) for n, value in enumerate(values)], partition=0)


def row(offset: int, batch: int | None = 0, **payload: Any) -> dict[str, Any]:
    place = {
        "_topic": "orders",
        "_partition": 0,
        "_offset": offset,
        "_headers": None,
        "_key": b"k%d" % offset,
    }
    return {**place, **payload, "_rescued": None, "_ingest_batch": batch}


GOOD = [row(0, id=1, name="one"), row(3, id=None, name=None), row(4, id=5, name=None)]


@pytest.mark.spec("SP-76", "SP-86")
def test_fields_become_columns_and_bad_values_null(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    publish(cluster)
    reporter = run(cluster, tmp_path, **JSON, on_bad_record="null")
    nothing = {"id": None, "name": None}
    assert landed(tmp_path / "sink") == sorted(
        [*GOOD, row(1, **nothing), row(2, **nothing)], key=lambda one: one["_offset"]
    )
    assert (reporter.batches[0].rows, reporter.batches[0].bad_records, reporter.results[0].bad_records) == (
        5,
        2,
        2,
    )


@pytest.mark.spec("SP-75", "SP-76", "SP-86")
def test_messages_of_protobuf_become_columns(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    files = flights()[1:2]
    messages = [message_class(files, "nyc.Leg")(to=to, by=1).SerializeToString() for to in ("ORD", "SFO")]
    cluster.produce(
        "orders", [(b"k%d" % n, value) for n, value in enumerate([*messages, b"\x08"])], partition=0
    )
    schema = written_to(tmp_path, files, "nyc.Leg")
    run(cluster, tmp_path, format="protobuf", schema=schema, on_bad_record="null", partition_by="topic")
    legs = [(row["to"], row["by"]) for row in landed(tmp_path / "sink")]
    assert legs == [("ORD", "UA"), ("SFO", "UA"), (None, None)]


@pytest.mark.spec("SP-76", "SP-85")
def test_a_bad_record_ends_the_job_and_names_itself(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    publish(cluster)
    with pytest.raises(DecodeError, match="orders-0 at offset 1") as caught:
        run(cluster, tmp_path, **JSON)
    assert (caught.value.partition, caught.value.offset) == (0, 1)
    assert manifest.count(tmp_path / "sink") == 0
    assert run(cluster, tmp_path, **JSON, on_bad_record="null").results[0].rows == 5


@pytest.mark.spec("SP-76", "SP-88")
def test_dead_letters_hold_what_came_and_why(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    publish(cluster)
    reporter = run(cluster, tmp_path, **JSON, on_bad_record="dlq", dlq=f"parquet:{tmp_path / 'dead'}")
    assert landed(tmp_path / "sink") == GOOD
    dead = landed(tmp_path / "dead")
    assert [(one["_offset"], one["_key"], one["_raw"], one["_ingest_batch"]) for one in dead] == [
        (1, b"k1", b"nonsense", 0),
        (2, b"k2", b'{"id": "two", "name": "x"}', 0),
    ]
    assert all(one["_error"].startswith("value: json: ") for one in dead)
    assert (reporter.batches[0].rows, reporter.batches[0].bad_records) == (3, 2)


@pytest.mark.spec("SP-82", "SP-88")
@pytest.mark.parametrize("step", ["after a rename", "before the manifest", "after the manifest"])
def test_dead_letters_count_once_too(cluster: EmbeddedCluster, tmp_path: Path, step: str) -> None:
    publish(cluster)
    changed = {**JSON, "on_bad_record": "dlq", "dlq": f"parquet:{tmp_path / 'dead'}"}
    assert killing.killed(given(cluster.bootstrap_servers, tmp_path, **changed), step, 0) == -9
    run(cluster, tmp_path, **changed)
    assert landed(tmp_path / "sink") == GOOD
    assert [one["_offset"] for one in landed(tmp_path / "dead")] == [1, 2]


def test_a_directory_without_the_dead_letters_of_earlier_runs_is_warned_of(
    cluster: EmbeddedCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dead: dict[str, Any] = {"on_bad_record": "dlq", "dlq": f"parquet:{tmp_path / 'dead'}"}
    cluster.produce("orders", [b"no json"])
    for wanted in (0, 0):
        run(cluster, tmp_path, **JSON, **dead)
        assert caplog.text.count("it may not be mounted") == wanted
    (tmp_path / "dead").rename(tmp_path / "elsewhere")
    run(cluster, tmp_path, **JSON, **dead)
    assert caplog.text.count("it may not be mounted") >= 1


@pytest.mark.spec("SP-82", "SP-88")
@pytest.mark.parametrize("keeps", ["dlq", "fail"])
def test_dead_letters_of_a_batch_that_was_killed_are_none(
    cluster: EmbeddedCluster, tmp_path: Path, keeps: str
) -> None:
    """It died between its two manifests, and read them all when it ran again."""
    cluster.produce("orders", [b'{"id": 1}', b'{"id": 5000000000}'], partition=0)
    dead: dict[str, Any] = {"on_bad_record": "dlq", "dlq": f"parquet:{tmp_path / 'dead'}"}
    settings = given(cluster.bootstrap_servers, tmp_path, format="json", schema="id INT", **dead)
    assert killing.killed(settings, "after the manifest", 0) == -9
    replay = {"format": "string", "from_dlq": f"parquet:{tmp_path / 'dead'}"}
    with pytest.raises(ConfigError, match="run the job again first"):
        run(cluster, tmp_path, **replay)
    run(cluster, tmp_path, format="json", schema="id BIGINT", **(dead if keeps == "dlq" else {}))
    if keeps == "dlq":
        assert landed(tmp_path / "dead") == []
        assert run(cluster, tmp_path, **replay).results[0].rows == 0
    else:
        with pytest.raises(ConfigError, match="none that were left out"):
            run(cluster, tmp_path, **replay)
    assert [one["id"] for one in landed(tmp_path / "sink")] == [1, 5000000000]


@pytest.mark.spec("SP-88")
def test_dead_letters_of_another_sink_are_refused(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    publish(cluster)
    run(cluster, tmp_path, **JSON, on_bad_record="dlq", dlq=f"parquet:{tmp_path / 'dead'}")
    with pytest.raises(ConfigError, match="Give the sink that they are missing from"):
        run(cluster, tmp_path / "other", format="string", from_dlq=f"parquet:{tmp_path / 'dead'}")


@pytest.mark.spec("SP-88")
@pytest.mark.parametrize("wrong", ["daed", "file"])
def test_a_path_without_dead_letters_is_no_replay_of_none(
    cluster: EmbeddedCluster, tmp_path: Path, wrong: str
) -> None:
    publish(cluster)
    run(cluster, tmp_path, **JSON, on_bad_record="dlq", dlq=f"parquet:{tmp_path / 'dead'}")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=f"{wrong} is not a directory of dead letters"):
        run(cluster, tmp_path, format="string", from_dlq=f"parquet:{tmp_path / wrong}")
    assert not (tmp_path / "daed").exists()


@pytest.mark.spec("SP-88")
def test_dead_letters_land_once_when_they_can_be_read(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    publish(cluster)
    run(cluster, tmp_path, **JSON, on_bad_record="dlq", dlq=f"parquet:{tmp_path / 'dead'}")
    again = {
        **JSON,
        "schema": "id STRING, name STRING",
        "from_dlq": f"parquet:{tmp_path / 'dead'}",
        "on_bad_record": "dlq",
        "dlq": f"parquet:{tmp_path / 'deader'}",
    }
    plan = ingest.plan(IngestSettings.parse(given(cluster.bootstrap_servers, tmp_path, **again)))
    assert (plan.topics, plan.tasks) == (("orders",), 1)
    for count in (1, 0):
        reporter = run(cluster, tmp_path, **again)
        assert (reporter.results[0].rows, reporter.results[0].bad_records) == (count, count)
        found = landed(tmp_path / "sink")
        assert [one for one in found if one["_offset"] != 2] == GOOD
        assert [one for one in found if one["_offset"] == 2] == [row(2, None, id="two", name="x")]
        assert [one["_offset"] for one in landed(tmp_path / "deader")] == [1]
    assert gc(tmp_path / "sink", min_age_ms=0, apply=True) == []
    cluster.create_topic("clicks", 1)
    with pytest.raises(ConfigError, match="dead letters of orders too"):
        run(cluster, tmp_path, **again, topics="clicks")


@pytest.mark.spec("SP-76", "SP-88")
@pytest.mark.parametrize("schema", ["INT", "STRING"])
def test_a_key_that_cannot_be_read_keeps_its_value(
    cluster: EmbeddedCluster, tmp_path: Path, schema: str
) -> None:
    """Both come back as they were published, whichever of them was bad."""
    published = [
        (b"no JSON", b'{"id": 1}'),
        (b"null", b"nonsense"),
        (b"x", b"y"),
        (None, b"z"),
        (b"null", b'{"id": 5}'),
    ]
    cluster.produce("orders", published, partition=0)
    keys = {"options": ["keyFormat=json", f"keySchema={schema}"]}
    run(cluster, tmp_path, **JSON, **keys, on_bad_record="dlq", dlq=f"parquet:{tmp_path / 'dead'}")
    dead = landed(tmp_path / "dead")
    assert [(one["_offset"], one["_key"], one["_raw"]) for one in dead] == [
        (offset, *pair) for offset, pair in enumerate(published[:4])
    ]
    assert [one["_error"].split(":")[0] for one in dead] == ["key", "value", "key", "value"]
    assert "; value: " in dead[2]["_error"]
    run(cluster, tmp_path, format="string", from_dlq=f"parquet:{tmp_path / 'dead'}")
    found = [one for one in landed(tmp_path / "sink") if one["_offset"] < 4]
    assert [(one["_key"], one["value"].encode()) for one in found] == published[:4]


@pytest.mark.spec("SP-88")
def test_a_replay_reads_keys_with_their_format(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    cluster.produce("orders", [(b"seven", b'{"id": 1}'), (b"8", b"nonsense")], partition=0)
    keys = {"options": ["keyFormat=json", "keySchema=INT"]}
    run(cluster, tmp_path, **JSON, **keys, on_bad_record="dlq", dlq=f"parquet:{tmp_path / 'dead'}")
    again = {"format": "string", **keys, "from_dlq": f"parquet:{tmp_path / 'dead'}"}
    run(cluster, tmp_path, **again, on_bad_record="null")
    assert [(one["_key"], one["value"]) for one in landed(tmp_path / "sink")] == [
        (None, '{"id": 1}'),
        (8, "nonsense"),
    ]


@pytest.mark.spec("SP-88")
def test_a_replay_that_was_stopped_goes_on_with_the_next_dead_letters(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    for _ in range(3):
        publish(cluster)
        run(cluster, tmp_path, **JSON, on_bad_record="dlq", dlq=f"parquet:{tmp_path / 'dead'}")
    again = {"format": "string", "from_dlq": f"parquet:{tmp_path / 'dead'}"}
    stop = StopRequest()
    settings = IngestSettings.parse(given(cluster.bootstrap_servers, tmp_path, **again))
    result = ingest.run(settings, Stopping(stop=stop), stop)
    assert (result.ended, result.batches, result.rows, result.signal) == ("stopped", 1, 2, signal.SIGTERM)
    assert run(cluster, tmp_path, **again).results[0].rows == 4
    assert sorted(one["_offset"] for one in landed(tmp_path / "sink")) == list(range(15))


@pytest.mark.spec("SP-88")
def test_a_replay_takes_a_plain_name_for_one_topic(tmp_path: Path) -> None:
    with EmbeddedCluster(topics={"a.b": 1, "axb": 1}) as cluster:
        cluster.produce("axb", [b"nonsense"], partition=0)
        dead = f"parquet:{tmp_path / 'dead'}"
        run(cluster, tmp_path, topics="a.b,axb", **JSON, on_bad_record="dlq", dlq=dead)
        again = {"format": "string", "from_dlq": dead}
        with pytest.raises(ConfigError, match="has dead letters of axb too"):
            run(cluster, tmp_path, **again, topics="a.b")
        assert run(cluster, tmp_path, **again, topics="a.?b").results[0].rows == 1


@pytest.mark.spec("SP-88")
def test_dead_letters_whose_key_was_decoded_are_refused(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    publish(cluster)
    run(cluster, tmp_path, **JSON, on_bad_record="dlq", dlq=f"parquet:{tmp_path / 'dead'}")
    [path] = manifest.files(tmp_path / "dead")
    table = pq.read_table(path, partitioning=None)
    at = table.column_names.index("_key")
    pq.write_table(table.set_column(at, "_key", pa.array([1, 2], pa.int32())), path)
    with pytest.raises(SinkError, match="its column _key is int32, not binary"):
        run(cluster, tmp_path, format="string", from_dlq=f"parquet:{tmp_path / 'dead'}")


@pytest.mark.spec("SP-74")
def test_text_is_text(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    cluster.produce("orders", ["grün", b"\xff", None], partition=0)
    run(cluster, tmp_path, format="string", on_bad_record="null")
    assert [one.value for one in rows(tmp_path / "sink")] == ["grün", None, None]


@pytest.mark.spec("SP-86")
def test_a_field_with_a_name_of_ours_is_refused_before_anything_lands(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    publish(cluster)
    with pytest.raises(ConfigError, match="_offset"):
        run(cluster, tmp_path, format="json", schema="_offset BIGINT")
    assert not (tmp_path / "sink" / "topic=orders").exists()


@pytest.mark.spec("SP-89")
def test_a_backfill_lands_what_was_before_the_job_and_once(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    early = fill(cluster, 40)
    run(cluster, tmp_path, start="latest")
    late = fill(cluster, 25, first=40)
    run(cluster, tmp_path, start="latest")
    for count in (40, 0):
        reporter = run(cluster, tmp_path, backfill=True, start="earliest")
        assert reporter.results[0].rows == count
        assert_exactly_once(tmp_path / "sink", early + late)
    wanted = late + fill(cluster, 5, first=65)
    run(cluster, tmp_path, start="latest")
    assert_exactly_once(tmp_path / "sink", early + wanted)


@pytest.mark.spec("SP-89")
def test_a_backfill_of_what_counts_or_will_count_is_refused(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    early = fill(cluster, 40)
    run(cluster, tmp_path, backfill=True, end=offsets_file(tmp_path, 10))
    with pytest.raises(SinkError, match="would count twice"):
        run(cluster, tmp_path, backfill=True, end=offsets_file(tmp_path, 20))
    with pytest.raises(SinkError, match="would count twice"):
        run(cluster, tmp_path, start="earliest")  # a new job would land them again
    assert_exactly_once(tmp_path / "sink", early[:10])
    run(cluster, tmp_path, start=offsets_file(tmp_path, 10))
    assert_exactly_once(tmp_path / "sink", early)
    fill(cluster, 10, first=40)
    starts, ends = offsets_file(tmp_path, 40), offsets_file(tmp_path, 50)
    with pytest.raises(SinkError, match="The job of this checkpoint lands orders-0 from 10 on"):
        run(cluster, tmp_path, backfill=True, start=starts, end=ends)


@pytest.mark.spec("SP-82", "SP-89")
def test_a_backfill_that_is_killed_counts_when_it_is_run_again(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    wanted = fill(cluster, 40)
    settings = given(cluster.bootstrap_servers, tmp_path, backfill=True)
    assert killing.killed(settings, "after a rename", 0) == -9
    assert manifest.count(tmp_path / "sink") == 0
    assert run(cluster, tmp_path, backfill=True).results[0].rows == 40
    assert_exactly_once(tmp_path / "sink", wanted)


@pytest.mark.spec("SP-83")
def test_the_plan_of_a_backfill(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    fill(cluster, 40)
    settings = IngestSettings.parse(given(cluster.bootstrap_servers, tmp_path, backfill=True))
    plan = ingest.plan(settings)
    assert (plan.backlog_rows, plan.tasks, plan.trigger) == (40, 1, "backfill")
    assert str(plan.checkpoint) == "new"
    assert list(tmp_path.iterdir()) == []
    assert isinstance(RecordingReporter().plans, list)


@pytest.mark.spec("SP-83")
def test_the_plan_of_what_lands_beside_a_job_says_where_its_checkpoint_stays(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    fill(cluster, 40)
    run(cluster, tmp_path, start="latest")
    run(cluster, tmp_path, backfill=True)
    fill(cluster, 40, first=40)
    run(cluster, tmp_path)
    again = run(cluster, tmp_path, backfill=True)
    (tmp_path / "dead" / manifest.DIRECTORY).mkdir(parents=True)  # of a job whose records were all good
    replay = run(cluster, tmp_path, format="string", from_dlq=f"parquet:{tmp_path / 'dead'}")
    for reporter in (again, replay):
        assert str(reporter.plans[0].checkpoint) == "stays before batch 1"

"""The schema of a job: what Spark finds becomes DDL, what is frozen stays, and grows only when that is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError, DecodeError
from kclient.spark.ingest import run as ingest
from kclient.spark.ingest import schemas
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.sink import manifest
from tests.spark.jobs import killing
from tests.spark.jobs.support import given, run

pytestmark = pytest.mark.timeout(90)


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 1}) as running:
        yield running


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize(
    ("found", "ddl"),
    [
        ("OBJECT<id: BIGINT, n: STRING>", "`id` bigint, `n` string"),
        (
            "OBJECT<f: DECIMAL(5,2), big: DECIMAL(21,0), e: DOUBLE>",
            "`f` double, `big` decimal(38,0), `e` double",
        ),
        ("OBJECT<m: VARIANT, nul: VOID, b: BOOLEAN>", "`b` boolean"),
        ("OBJECT<o: OBJECT<x: BIGINT, y: VOID>>", "`o` struct<`x`:bigint>"),
        ("OBJECT<arr: ARRAY<OBJECT<q: BIGINT>>, v: ARRAY<VARIANT>>", "`arr` array<struct<`q`:bigint>>"),
        ("OBJECT<`weird name`: BIGINT, `OBJECT<`: STRING>", "`weird name` bigint, `OBJECT<` string"),
        ("OBJECT<o: OBJECT<>, a: BIGINT>", "`a` bigint"),
        ("VARIANT", None),
        ("VOID", None),
        ("ARRAY<BIGINT>", None),
        ("OBJECT<a: VOID>", None),
    ],
)
def test_what_spark_finds_as_ddl(found: str, ddl: str | None) -> None:
    assert schemas.of_variants(found) == ddl


@pytest.mark.spec("SP-87")
def test_a_schema_grows_after_what_it_has() -> None:
    grown = schemas.widened("a BIGINT, o STRUCT<x: INT>", "`new` string, o STRUCT<x: STRING, y: INT>, A INT")
    assert grown == "`a` bigint, `o` struct<`x`:int,`y`:int>, `new` string"
    assert schemas.widened(grown, grown) == grown


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize(
    ("schema", "evolves", "problem"),
    [
        ("a INT, o STRUCT<x: INT>", False, None),
        ("a INT, o STRUCT<x: INT, y: INT>", True, None),
        ("a INT, o STRUCT<x: INT>, b INT", False, "fields were added.*--on-new-field add"),
        ("a BIGINT, o STRUCT<x: INT>", True, "a would change or go away"),
        ("a INT, o STRUCT<y: INT>", True, r"o\.x would change or go away"),
    ],
)
def test_another_schema_is_taken_only_if_it_adds_and_that_was_asked_for(
    tmp_path: Path, schema: str, evolves: bool, problem: str | None
) -> None:
    frozen = "a INT, o STRUCT<x: INT>"
    how = {"format": "json", "schema": schema, "on_new_field": "add" if evolves else None}
    settings = IngestSettings.parse(given("localhost:9092", tmp_path, **how))
    if problem is None:
        schemas.check_extends(frozen, settings, None)
    else:
        with pytest.raises(ConfigError, match=problem):
            schemas.check_extends(frozen, settings, None)


def landed(root: Path) -> list[tuple[Any, ...]]:
    tables = [pq.read_table(path, partitioning=None) for path in manifest.files(root / "sink")]
    rows = pa.concat_tables(tables, promote_options="default").sort_by("_offset").to_pylist()
    return [tuple(row.get(name) for name in ("a", "b", "_rescued")) for row in rows]


@pytest.mark.spec("SP-87")
def test_columns_are_added_without_spark(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    values = [b'{"a": 1}', b'{"a": 2, "b": "x"}', b'{"a": 3, "b": "y", "c": []}']
    grow = {"format": "json", "on_new_field": "add", "partition_by": "topic"}
    cluster.produce("orders", values[:2])
    run(cluster, tmp_path, **grow, schema="a BIGINT")
    cluster.produce("orders", values[2:])
    with pytest.raises(ConfigError, match="fields were added"):
        run(cluster, tmp_path, format="json", schema="a BIGINT, b STRING")
    run(cluster, tmp_path, **grow, schema="a BIGINT, b STRING")
    assert landed(tmp_path) == [(1, None, None), (2, None, '{"b":"x"}'), (3, "y", '{"c":[]}')]
    kept = json.loads((tmp_path / "checkpoint/kclient/schema.json").read_text())
    assert kept == [{"batch": 0, "schema": "a BIGINT"}, {"batch": 1, "schema": "a BIGINT, b STRING"}]


@pytest.mark.spec("SP-87")
def test_new_fields_are_kept_although_the_schema_stays(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    keep = {"format": "json", "on_new_field": "rescue"}
    cluster.produce("orders", [b'{"a": 1}', b'{"a": 2, "b": "x"}'])
    run(cluster, tmp_path, **keep, schema="a BIGINT")
    assert landed(tmp_path) == [(1, None, None), (2, None, '{"b":"x"}')]
    with pytest.raises(ConfigError, match=r"fields were added\. .* Give --on-new-field add"):
        run(cluster, tmp_path, **keep, schema="a BIGINT, b STRING")


@pytest.mark.spec("SP-87", "SP-88")
def test_a_new_field_stops_the_job_before_anything_of_its_batch_lands(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    refuse = {"format": "json", "on_new_field": "fail", "partition_by": "topic"}
    cluster.produce("orders", [b'{"a": 1}'])
    run(cluster, tmp_path, **refuse, schema="a BIGINT, o STRUCT<x: BIGINT>")
    cluster.produce("orders", [b'{"a": 2}', b'{"a": 3, "o": {"x": 1, "pin": "secret"}, "b": 1}'])
    with pytest.raises(
        DecodeError, match=r"the value has fields that the schema does not name: o, b\."
    ) as caught:
        run(cluster, tmp_path, **refuse, schema="a BIGINT, o STRUCT<x: BIGINT>")
    assert (caught.value.topic, caught.value.offset) == ("orders", 2)
    assert "secret" not in str(caught.value)
    assert landed(tmp_path) == [(1, None, None)]
    run(
        cluster, tmp_path, **refuse | {"on_new_field": "add"},
        schema="a BIGINT, o STRUCT<x: BIGINT, pin: STRING>, b BIGINT",
    )  # fmt: skip
    assert [row[:2] for row in landed(tmp_path)] == [(1, None), (2, None), (3, 1)]


@pytest.mark.spec("SP-87", "SP-88")
@pytest.mark.parametrize("engine", ["direct", "spark"])
def test_values_with_new_fields_are_dead_letters(
    request: pytest.FixtureRequest, cluster: EmbeddedCluster, tmp_path: Path, engine: str
) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    values = [b'{"a": 1}', b'{"a": 2, "b": "x"}', b'{"a": 3}', b"no JSON"]
    cluster.produce("orders", values)
    dead = {"on_bad_record": "dlq", "dlq": f"parquet:{tmp_path / 'dlq'}", "engine": engine}
    run(cluster, tmp_path, format="json", schema="a BIGINT", on_new_field="fail", parallelism=None, **dead)
    assert landed(tmp_path) == [(1, None, None), (3, None, None)]
    letters = pa.concat_tables(
        pq.read_table(path, partitioning=None) for path in manifest.files(tmp_path / "dlq")
    )
    rows = letters.sort_by("_offset").to_pylist()
    assert [(row["_offset"], row["_raw"]) for row in rows] == [(1, values[1]), (3, values[3])]
    assert rows[0]["_error"] == "value: json: has fields that the schema does not name: b"


@pytest.mark.spec("SP-87", "SP-88")
def test_half_a_pair_in_an_unknown_field_does_not_stop_a_job(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    cluster.produce("orders", [b'{"a": 1}', b'{"a": 2, "b": "\\ud800"}', b'{"a": 3, "c": 1.10}'])
    dead = {"on_bad_record": "dlq", "dlq": f"parquet:{tmp_path / 'dlq'}"}
    run(cluster, tmp_path, format="json", schema="a BIGINT", on_new_field="add", **dead)
    assert landed(tmp_path) == [(1, None, None), (3, None, '{"c":1.10}')]


@pytest.mark.spec("SP-87")
def test_a_schema_by_which_nothing_has_landed_may_be_corrected(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    cluster.produce("orders", [b'{"a": "text"}'])
    with pytest.raises(Exception, match="cannot be read as json"):
        run(cluster, tmp_path, format="json", schema="a BIGINT")
    run(cluster, tmp_path, format="json", schema="a STRING")
    assert Checkpoint(tmp_path / "checkpoint").schema() == "a STRING"


@pytest.mark.spec("SP-83", "SP-87")
@pytest.mark.parametrize("old", [False, True], ids=["kept", "by the frozen schema"])
@pytest.mark.parametrize("changed", [{}, {"format": "string"}, {"format": "string", "backfill": True}])
def test_a_job_that_has_landed_keeps_its_format(
    cluster: EmbeddedCluster, tmp_path: Path, changed: dict[str, Any], old: bool
) -> None:
    cluster.produce("orders", [b'{"a": 1}'])
    run(cluster, tmp_path, format="json", schema="a BIGINT")
    if old:
        without_format(tmp_path)
    cluster.produce("orders", [b'{"a": 2}'])
    with pytest.raises(ConfigError, match=r"its format is 'json', not .* Add --format json, or"):
        run(cluster, tmp_path, **changed)
    run(cluster, tmp_path, format="json", schema="a BIGINT")
    assert [a for a, *_ in landed(tmp_path)] == [1, 2]


def without_format(root: Path) -> None:
    """As a release left the checkpoint that did not keep the format."""
    path = root / "checkpoint/kclient/job.json"
    kept = json.loads(path.read_text())
    del kept["format"]
    path.write_text(json.dumps(kept))


def test_a_checkpoint_that_does_not_say_its_format_is_taken_up(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    cluster.produce("orders", [b"one"])
    run(cluster, tmp_path, format="string")
    without_format(tmp_path)
    cluster.produce("orders", [b"two"])
    run(cluster, tmp_path, format="string")
    with pytest.raises(ConfigError, match="its format is 'string', not 'raw'"):
        run(cluster, tmp_path)
    assert manifest.count(tmp_path / "sink") == 2


@pytest.mark.spec("SP-87")
def test_a_format_by_which_nothing_has_landed_may_be_corrected(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    cluster.produce("orders", [b"no json"])
    with pytest.raises(DecodeError):
        run(cluster, tmp_path, format="json", schema="a BIGINT")
    run(cluster, tmp_path, format="string")
    assert manifest.count(tmp_path / "sink") == 1


@pytest.mark.spec("SP-82", "SP-83", "SP-87")
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"format": "string", "schema": None}, "its format is 'json', not 'string'"),
        ({"schema": "a STRING"}, "a would change or go away"),
    ],
)
def test_a_job_that_was_killed_after_its_first_manifest_keeps_its_format_and_schema(
    cluster: EmbeddedCluster, tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    cluster.produce("orders", [b'{"a": 1}'])
    how = {"format": "json", "schema": "a BIGINT"}
    assert killing.killed(given(cluster.bootstrap_servers, tmp_path, **how), "after the manifest", 0) == -9
    with pytest.raises(ConfigError, match=message):
        run(cluster, tmp_path, **{**how, **changed})
    cluster.produce("orders", [b'{"a": 2}'])
    run(cluster, tmp_path, **how)
    assert [a for a, *_ in landed(tmp_path)] == [1, 2]


@pytest.mark.spec("SP-83", "SP-87")
def test_a_job_keeps_the_format_of_its_backfill(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    cluster.produce("orders", [b'{"a": 1}'])
    run(cluster, tmp_path, format="json", schema="a BIGINT", start="latest")
    run(cluster, tmp_path, format="json", schema="a BIGINT", backfill=True)
    with pytest.raises(ConfigError, match="its format is 'json', not 'string'"):
        run(cluster, tmp_path, format="string")


@pytest.mark.spec("SP-87")
def test_a_backfill_lands_by_the_schema_of_the_job(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    cluster.produce("orders", [b'{"a": 1}'])
    run(cluster, tmp_path, format="json", schema="a BIGINT", start="latest")
    with pytest.raises(ConfigError, match="a would change or go away"):
        run(cluster, tmp_path, format="json", schema="a STRING", backfill=True)
    run(cluster, tmp_path, format="json", schema="a BIGINT", backfill=True)
    assert [a for a, *_ in landed(tmp_path)] == [1]


@pytest.mark.spec("SP-87")
def test_what_runs_beside_a_job_takes_the_schema_that_the_job_found(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    cluster.produce("orders", [b'{"a": 1}', b'{"a": 2, "b": 3}'])
    beside = {"format": "json", "schema": "infer", "backfill": True, "engine": "spark"}
    with pytest.raises(ConfigError, match="has no schema yet"):
        run(cluster, tmp_path, **beside)
    Checkpoint(tmp_path / "checkpoint").add_schema("a BIGINT", 0)
    reporter = run(cluster, tmp_path, format="json", schema="a BIGINT", on_new_field="add", backfill=True)
    assert reporter.results[0].rows == 2
    assert landed(tmp_path) == [(1, None, None), (2, None, '{"b":3}')]


@pytest.mark.spec("SP-83", "SP-87")
def test_a_plan_looks_for_no_schema(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    cluster.produce("orders", [b'{"a": 1}'])
    infer = {"format": "json", "schema": "infer", "engine": "spark"}
    plan = ingest.plan(IngestSettings.parse(given(cluster.bootstrap_servers, tmp_path, **infer)))
    assert plan.backlog_rows == 1
    assert list(tmp_path.iterdir()) == []

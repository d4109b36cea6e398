"""Jobs whose values have fields that the schema does not name: kept, refused, or left out, in both engines."""

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
from kclient.network import schema_registry as registry_module
from kclient.spark.sink import manifest
from tests.spark.jobs.delta_job_support import DeltaLake
from tests.spark.jobs.iceberg_support import Lake
from tests.spark.jobs.support import run
from tests.spark.jobs.table_support import TableLake
from tests.spark.registry import RegistryServer, registry_server
from tests.spark.test_decoding_avro import by_fastavro
from tests.spark.test_decoding_protobuf import message_class, one, written_to

pytestmark = pytest.mark.timeout(90)

OLD = {"type": "record", "name": "Order", "fields": [{"name": "a", "type": "long"}]}
NEW = {**OLD, "fields": [*OLD["fields"], {"name": "pin", "type": "string"}]}


@pytest.fixture(params=["direct", "spark"])
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The settings of an engine, which is there."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    return {"engine": request.param, "parallelism": None}


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 1}) as running:
        yield running


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    registry_module._schemas.clear()
    registry_module._unknown.clear()
    with registry_server() as server:
        yield server


@pytest.fixture(params=[Lake, DeltaLake])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> TableLake:
    made: TableLake = request.param(tmp_path)
    return made


def avro(registry: RegistryServer) -> dict[str, Any]:
    """A job that reads by the old schema what the registry's frame says."""
    options = [f"schema.registry.url={registry.url}", "schema.registry.allowHttp=true"]
    return {"format": "avro", "schema": json.dumps(OLD), "options": options}


def written(registry: RegistryServer, schema: Any, **value: Any) -> bytes:
    number = registry.add("orders-value", schema)
    return b"\0" + number.to_bytes(4, "big") + by_fastavro(schema, value)


def landed(sink: Path) -> list[tuple[Any, ...]]:
    tables = [pq.read_table(path, partitioning=None) for path in manifest.files(sink)]
    rows = pa.concat_tables(tables, promote_options="default").sort_by("_offset").to_pylist()
    return [tuple(row.get(name, "-") for name in ("a", "_rescued")) for row in rows]


def dead_letters(sink: Path) -> list[tuple[Any, ...]]:
    rows = [
        row for path in manifest.files(sink) for row in pq.read_table(path, partitioning=None).to_pylist()
    ]
    return [(row["_offset"], row["_raw"], row["_error"]) for row in rows]


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize("rule", ["rescue", "add"])
def test_new_fields_of_avro_are_kept(
    cluster: EmbeddedCluster, registry: RegistryServer, tmp_path: Path, engine: dict[str, Any], rule: str
) -> None:
    cluster.produce("orders", [written(registry, OLD, a=1), written(registry, NEW, a=2, pin="x"), None])
    run(cluster, tmp_path, **avro(registry), **engine, on_new_field=rule)
    assert landed(tmp_path / "sink") == [(1, None), (2, '{"pin":"x"}'), (None, None)]


@pytest.mark.spec("SP-87", "SP-88")
def test_new_fields_of_avro_make_dead_letters(
    cluster: EmbeddedCluster, registry: RegistryServer, tmp_path: Path, engine: dict[str, Any]
) -> None:
    values = [written(registry, OLD, a=1), written(registry, NEW, a=2, pin="secret"), b"no frame"]
    cluster.produce("orders", values)
    dead = {"on_bad_record": "dlq", "dlq": f"parquet:{tmp_path / 'dlq'}"}
    run(cluster, tmp_path, **avro(registry), **engine, on_new_field="fail", **dead)
    assert landed(tmp_path / "sink") == [(1, "-")]
    new, bad = dead_letters(tmp_path / "dlq")
    assert new == (1, values[1], "value: avro: has fields that the schema does not name: pin")
    assert bad[:2] == (2, values[2])


@pytest.mark.spec("SP-87")
def test_a_new_field_of_avro_stops_the_job_before_anything_of_its_batch_lands(
    cluster: EmbeddedCluster, registry: RegistryServer, tmp_path: Path
) -> None:
    cluster.produce("orders", [written(registry, OLD, a=1), written(registry, NEW, a=2, pin="secret")])
    with pytest.raises(
        DecodeError, match=r"the value has fields that the schema does not name: pin\."
    ) as caught:
        run(cluster, tmp_path, **avro(registry), on_new_field="fail")
    assert (caught.value.topic, caught.value.offset) == ("orders", 1)
    assert "secret" not in str(caught.value)
    assert manifest.count(tmp_path / "sink") == 0
    run(cluster, tmp_path, **avro(registry), on_new_field="ignore")
    assert landed(tmp_path / "sink") == [(1, "-"), (2, "-")]


OLDER, NEWER = one(("a", "int64")), one(("a", "int64"), ("pin", "string"))


def messages() -> list[bytes | None]:
    newer = message_class([NEWER], "p.M")
    return [newer(a=1).SerializeToString(), newer(a=2, pin="x").SerializeToString(), None, b"\x08"]


def protobuf(tmp_path: Path) -> dict[str, Any]:
    """A job that reads messages by the older schema, whose bad records are dead letters."""
    dead = {"on_bad_record": "dlq", "dlq": f"parquet:{tmp_path / 'dlq'}"}
    return {"format": "protobuf", "schema": written_to(tmp_path, [OLDER], "p.M"), **dead}


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize("rule", ["rescue", "add"])
def test_new_fields_of_protobuf_are_kept(
    cluster: EmbeddedCluster, tmp_path: Path, engine: dict[str, Any], rule: str
) -> None:
    cluster.produce("orders", messages())
    run(cluster, tmp_path, **protobuf(tmp_path), **engine, on_new_field=rule)
    assert landed(tmp_path / "sink") == [(1, None), (2, '{"2":"EgF4"}'), (None, None)]


@pytest.mark.spec("SP-87", "SP-88")
def test_new_fields_of_protobuf_make_dead_letters_that_a_newer_schema_reads(
    cluster: EmbeddedCluster, tmp_path: Path, engine: dict[str, Any]
) -> None:
    cluster.produce("orders", messages())
    run(cluster, tmp_path, **protobuf(tmp_path), **engine, on_new_field="fail")
    assert landed(tmp_path / "sink") == [(1, "-"), (None, "-")]
    new, bad = dead_letters(tmp_path / "dlq")
    assert new == (1, messages()[1], "value: protobuf: has fields that the schema does not name: 2")
    assert bad[:2] == (3, b"\x08")
    newer = {"format": "protobuf", "schema": written_to(tmp_path, [NEWER], "p.M"), "on_bad_record": "null"}
    run(cluster, tmp_path, **newer, from_dlq=f"parquet:{tmp_path / 'dlq'}", on_new_field="fail")
    assert landed(tmp_path / "sink") == [(1, "-"), (2, "-"), (None, "-"), (None, "-")]


@pytest.mark.spec("SP-87")
def test_new_fields_of_protobuf_are_left_out_where_that_is_said(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    cluster.produce("orders", messages()[:2])
    run(cluster, tmp_path, **protobuf(tmp_path), on_new_field="ignore")
    assert landed(tmp_path / "sink") == [(1, "-"), (2, "-")]


@pytest.mark.spec("SP-87")
def test_new_fields_are_kept_in_a_table_unless_another_rule_is_given(
    cluster: EmbeddedCluster, registry: RegistryServer, lake: TableLake
) -> None:
    cluster.produce("orders", [written(registry, NEW, a=1, pin="x")])
    lake.run(cluster, **avro(registry))
    [name] = lake.counted_files()
    rows = pq.read_table(name.removeprefix("file://"), partitioning=None).to_pylist()
    assert [(row["a"], row["_rescued"]) for row in rows] == [(1, '{"pin":"x"}')]


@pytest.mark.spec("SP-87")
def test_a_table_without_the_column_for_new_fields_is_told_how_to_go_on(
    cluster: EmbeddedCluster, registry: RegistryServer, lake: TableLake
) -> None:
    for rule in ("ignore", "add", None):
        cluster.produce("orders", [written(registry, NEW, a=1, pin="x")])
        if rule == "add":
            with pytest.raises(
                ConfigError, match=r"_rescued keeps .* --on-new-field add adds it .* ignore leaves"
            ):
                lake.run(cluster, **avro(registry))
        lake.run(cluster, **avro(registry), on_new_field=rule)
    assert len(lake.counted_files()) == 3

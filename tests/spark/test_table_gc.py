"""`gc` of tables: it removes what this table's own jobs wrote and no table names, however their places are spelled."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import requests
from pyiceberg.table import Table

from kclient.errors import ConfigError, SinkError
from kclient.spark.sink.delta import DeltaSink
from kclient.spark.sink.iceberg import IcebergTable
from kclient.spark.sink.manifest import Garbage
from tests.spark.delta_support import commit, created, written
from tests.spark.delta_support import offsets as delta_offsets
from tests.spark.jobs.iceberg_support import IDENTIFIER, Lake
from tests.spark.test_iceberg import Landing, offsets

LATER = 2**60


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def set_property(table: Table, name: str, value: str) -> None:
    with table.transaction() as transaction:
        transaction.set_properties({name: value})


def collected(table: IcebergTable | DeltaSink) -> list[Garbage]:
    """What `gc --apply` removes."""
    found = table.garbage(LATER)
    table.remove(found)
    return found


def hidden(directory: str, name: str) -> Path:
    """What a killed job leaves of a file in a directory."""
    path = Path(directory) / f".{name}.0123456789ab.tmp"
    path.write_bytes(b"x")
    return path


# --- Iceberg ---------------------------------------------------------------------------------------------------------


def test_a_table_made_where_a_renamed_one_was_leaves_its_files(lake: Lake) -> None:
    """A catalog gives both the same location."""
    first = Landing.into(lake)
    lost = [file.path for file in first.batch(0).files]
    assert first.commit(first.batch(0))
    lake.catalog.rename_table(IDENTIFIER, ("db", "orders_old"))
    again = Landing.into(lake, "k")
    assert again.files.root == first.files.root
    ours = [file.path for file in again.batch(0).files]
    assert again.commit(again.batch(0))
    assert [each.path for each in collected(again.table)] == ours
    renamed = IcebergTable("lake.db.orders_old", str(lake.catalog_file))
    assert lake.catalog.load_table(("db", "orders_old")).scan().to_arrow().num_rows == 10
    assert [each.path for each in collected(renamed)] == lost


def test_a_table_with_the_data_path_of_another_one_leaves_its_files_also_hidden_ones(lake: Lake) -> None:
    Landing.into(lake)
    place = {"write.data.path": f"file://{lake.root}/data"}
    set_property(lake.table, *next(iter(place.items())))
    landing = Landing.into(lake)
    assert landing.commit(landing.batch(0))
    begun = hidden(landing.files.root, Path(landing.batch(1).files[0].path).name)
    lake.catalog.create_table(("db", "other"), lake.table.schema(), properties=place)
    assert collected(IcebergTable("lake.db.other", str(lake.catalog_file))) == []
    assert offsets(lake) == list(range(10))
    assert [each.path for each in landing.table.garbage(LATER) if begun.name in each.path] == [begun.name]


def test_files_are_known_in_whatever_form_the_place_of_a_table_is_spelled(lake: Lake) -> None:
    landing = Landing.into(lake)
    assert landing.commit(landing.batch(0))
    set_property(lake.table, "write.data.path", f"file:{landing.files.root}")
    assert collected(landing.table) == []
    assert offsets(lake) == list(range(10))


def test_a_file_that_names_no_table_is_left(lake: Lake) -> None:
    """Earlier versions wrote such names: whose they are is unknown."""
    landing = Landing.into(lake)
    place = Path(landing.files.root)
    place.mkdir(parents=True)
    (place / f"00003-{0:020}-{10:020}-0123456789abcdef-0.parquet").write_bytes(b"x")
    assert landing.table.garbage(LATER) == []


def test_a_table_whose_files_others_may_name_is_refused(lake: Lake) -> None:
    landing = Landing.into(lake)
    set_property(lake.table, "gc.enabled", "false")
    with pytest.raises(ConfigError, match=r"gc\.enabled=false"):
        landing.table.garbage(LATER)


def test_a_rest_catalog_is_asked_for_all_snapshots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of branches alone would leave files of older ones without a name, and rollbacks without a trace."""
    asked: list[str] = []

    def send(session: requests.Session, request: requests.PreparedRequest, **options: Any) -> Any:
        asked.append(str(request.url))
        response = requests.Response()
        response.status_code, response._content = 200, b'{"defaults": {}, "overrides": {}}'
        return response

    monkeypatch.setattr(requests.Session, "send", send)
    file = tmp_path / "catalog.yaml"
    file.write_text("catalog:\n  x:\n    uri: http://127.0.0.1:9\n    snapshot-loading-mode: refs\n")
    with pytest.raises(SinkError):
        IcebergTable("x.db.orders", str(file)).load()
    assert asked[-1].endswith("/tables/orders?snapshots=all")


# --- Delta -----------------------------------------------------------------------------------------------------------


def test_a_delta_table_below_another_one_keeps_its_files(tmp_path: Path) -> None:
    outer, inner = DeltaSink(str(tmp_path)), DeltaSink(str(tmp_path / "inner"))
    assert commit(outer, written(outer, 0))
    assert commit(inner, written(inner, 0))
    lost = written(outer, 1).files
    assert [each.path for each in collected(outer)] == [file.path for file in lost]
    assert delta_offsets(inner) == list(range(10))


def test_a_delta_log_with_absolute_paths_names_its_files(tmp_path: Path) -> None:
    """The protocol allows both; delta-rs and Spark write relative ones."""
    sink = created(tmp_path / "with space")
    assert commit(sink, written(sink, 0))
    [entry] = Path(sink.url, "_delta_log").glob("*1.json")
    [file] = Path(sink.url).glob("*.parquet")
    text = entry.read_text()
    assert f'"path":"{file.name}"' in text
    entry.write_text(text.replace(f'"path":"{file.name}"', f'"path":"{file.as_uri()}"'))
    assert collected(DeltaSink(sink.url)) == []
    assert file.exists()


def test_a_delta_table_made_where_another_one_was_leaves_its_files(tmp_path: Path) -> None:
    """Its log may be kept elsewhere, to be brought back."""
    sink = DeltaSink(str(tmp_path))
    assert commit(sink, written(sink, 0))
    log = Path(sink.url, "_delta_log")
    shutil.move(log, tmp_path.with_name("log"))
    again = DeltaSink(str(tmp_path))
    assert commit(again, written(again, 0))
    assert collected(again) == []

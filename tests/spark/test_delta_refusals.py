"""Delta tables that a job cannot write to: it ends at once, with what to do, and tries nothing again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from kclient.errors import SinkError
from kclient.spark.sink import tables
from kclient.spark.sink.delta import DeltaSink
from kclient.spark.sink.tables import TableCommit
from tests.spark.delta_support import LAYOUT, created, other_writer, written
from tests.spark.memory_table import PausedRuntime


@pytest.fixture
def sink(tmp_path: Path) -> DeltaSink:
    return created(tmp_path)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that are loaded, each time that one is."""
    works, met = DeltaSink.load, list[str]()

    def loading(self: DeltaSink) -> DeltaTable:
        met.append(self.url)
        return works(self)

    monkeypatch.setattr(DeltaSink, "load", loading)
    return met


def commit(sink: DeltaSink, wanted: TableCommit) -> bool:
    return tables.commit(sink, wanted, PausedRuntime.seeded(1))


def upgrade(sink: DeltaSink, **protocol: Any) -> None:
    """Commit a protocol, as a newer writer does."""
    entry = Path(sink.url) / "_delta_log" / f"{other_writer(sink).version() + 1:020d}.json"
    entry.write_text(json.dumps({"protocol": protocol}) + "\n")


def features(*names: str, reads: bool) -> dict[str, Any]:
    """A protocol with features of writers, and of readers if it `reads`."""
    readers = {"minReaderVersion": 3, "readerFeatures": names} if reads else {"minReaderVersion": 1}
    return {**readers, "minWriterVersion": 7, "writerFeatures": names}


# --- protocols


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [
        (features("newest", reads=True), "Feature 'newest' is not supported"),
        (features("catalogManaged", reads=True), "catalog-managed table"),
        ({"minReaderVersion": 4, "minWriterVersion": 7, "writerFeatures": []}, "minimum reader version 4"),
    ],
)
def test_a_table_that_delta_rs_can_read_no_more_ends_the_job_at_once(
    sink: DeltaSink, loads: list[str], protocol: dict[str, Any], reason: str
) -> None:
    wanted = written(sink, 0)
    upgrade(sink, **protocol)
    loads.clear()
    with pytest.raises(SinkError, match=rf"{reason}.*Upgrade deltalake"):
        commit(sink, wanted)
    assert len(loads) == 1
    with pytest.raises(SinkError, match=rf"{reason}.*Upgrade deltalake"):
        sink.check(LAYOUT.schema(), ("topic",), evolves=False)
    assert len(loads) == 2


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [
        (features("typeWidening", reads=True), "Unsupported table features required"),
        (features("newest", reads=False), "Unsupported table features required"),
        ({"minReaderVersion": 1, "minWriterVersion": 6}, "Unsupported table features required"),
        ({"minReaderVersion": 1, "minWriterVersion": 8}, "Table features must be specified"),
    ],
)
def test_a_commit_that_delta_rs_refuses_for_the_protocol_is_not_tried_again(
    sink: DeltaSink, loads: list[str], monkeypatch: pytest.MonkeyPatch, protocol: dict[str, Any], reason: str
) -> None:
    """Also where kclient's own check lets it pass: another release of delta-rs may have other features."""
    wanted = written(sink, 0)
    upgrade(sink, **protocol)
    monkeypatch.setattr(DeltaSink, "_check_features", lambda *_: None)
    loads.clear()
    with pytest.raises(SinkError, match=rf"{reason}.*Upgrade deltalake"):
        commit(sink, wanted)
    assert len(loads) == 1

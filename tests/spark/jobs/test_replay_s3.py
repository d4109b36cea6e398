"""Dead letters in a bucket that land in a table on S3, each once, also by a replay that is killed and repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars
import pytest
from deltalake import DeltaTable

from kclient.embedded import EmbeddedCluster
from kclient.spark.sink.delta import DeltaSink, storage_options
from tests.s3 import Bucket
from tests.spark.jobs import killing, killing_delta, killing_iceberg
from tests.spark.jobs.delta_job_support import COLUMNS, DeltaLake
from tests.spark.jobs.support import Landed, given
from tests.spark.jobs.table_support import TableLake, landed
from tests.spark.jobs.test_iceberg_s3 import LakeOnS3

pytestmark = [pytest.mark.slow, pytest.mark.spread, pytest.mark.timeout(180)]

JSON = {"format": "json", "schema": "value STRING", "on_bad_record": "dlq"}
TEXT: dict[str, Any] = {"format": "string", "max_per_trigger": None, "group": None, "parallelism": None}
BAD = {1: '{"val', 3: "{"}
"""The records that are no JSON, by offset: each in a batch of its own."""


class DeltaOnS3(DeltaLake):
    """The table is in a bucket."""

    bucket: Bucket

    @classmethod
    def of(cls, root: Path, bucket: Bucket) -> DeltaOnS3:
        cls.bucket = bucket
        return cls(root)

    @property
    def where(self) -> str:
        return self.bucket.url("table")

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.where, storage_options=storage_options(self.where))

    def open(self) -> DeltaSink:
        return DeltaSink(self.where)

    def by_polars(self, version: int | None = None) -> list[Landed]:
        frame = polars.read_delta(self.where, version=version, storage_options={"allow_http": "true"})
        return landed(frame.select(*COLUMNS).to_dicts())


LAKES = {"iceberg": LakeOnS3, "delta": DeltaOnS3}
KILLS = {
    "iceberg": (
        killing_iceberg,
        ("before the table is read", "before the catalog is asked", "after the catalog has answered"),
    ),
    "delta": (killing_delta, ("before the table is read", "before the log", "after the log")),
}


def with_dead_letters(cluster: EmbeddedCluster, s3: Bucket, lake: TableLake) -> dict[str, Any]:
    """Two batches of a job with a bad record in each; return the settings of their replay."""
    places = {"checkpoint": s3.url("checkpoint")}
    dead = f"parquet:{s3.url('dead')}"
    for values in (['{"value": "0"}', BAD[1], '{"value": "2"}'], [BAD[3], '{"value": "4"}']):
        cluster.produce("orders", values, partition=0)
        assert lake.run(cluster, **places, **JSON, dlq=dead).results[0].bad_records == 1
    return {**places, **TEXT, "from_dlq": dead}


def assert_landed(lake: TableLake, *bad: int) -> None:
    """The good records, and those of the bad ones, are there once, by two readers."""
    wanted = {0: "0", 2: "2", 4: "4", **{offset: BAD[offset] for offset in bad}}
    for found in lake.judged():
        assert [(row.offset, row.value) for row in found] == sorted(wanted.items())


@pytest.mark.spec("SP-88")
@pytest.mark.parametrize("name", LAKES)
def test_dead_letters_of_a_bucket_land_in_a_table_once(
    cluster: EmbeddedCluster, s3: Bucket, tmp_path: Path, name: str
) -> None:
    lake = LAKES[name].of(tmp_path, s3)
    replay = with_dead_letters(cluster, s3, lake)
    assert_landed(lake)
    for rows in (2, 0):
        assert lake.run(cluster, **replay).results[0].rows == rows
        assert_landed(lake, *BAD)


@pytest.mark.spec("SP-82", "SP-88")
@pytest.mark.parametrize("times", [0, 1], ids=["the first letter", "the second"])
@pytest.mark.parametrize(
    ("name", "step"), [(name, step) for name, (_, steps) in KILLS.items() for step in steps]
)
def test_a_replay_that_was_killed_lands_the_others_when_it_is_repeated(
    cluster: EmbeddedCluster, s3: Bucket, tmp_path: Path, name: str, step: str, times: int
) -> None:
    lake = LAKES[name].of(tmp_path, s3)
    replay = with_dead_letters(cluster, s3, lake)
    settings = given(cluster.bootstrap_servers, tmp_path, **lake.settings(**replay))
    assert killing.killed(settings, step, times, KILLS[name][0].__name__) == -9
    there = times + step.startswith("after")
    assert_landed(lake, *list(BAD)[:there])
    for rows in (2 - there, 0):
        assert lake.run(cluster, **replay).results[0].rows == rows
        assert_landed(lake, *BAD)

"""Whose a place of dead letters is: the manifests of two jobs have the same numbers, so each job needs its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import SinkError
from kclient.spark.ingest import preflight
from kclient.spark.ingest import run as ingest
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.sink import manifest
from tests.s3 import Bucket
from tests.spark.jobs.delta_job_support import DeltaLake
from tests.spark.jobs.support import given, run

pytestmark = [pytest.mark.timeout(120), pytest.mark.spec("SP-88", "SP-89")]

BAD: dict[str, Any] = {"format": "json", "schema": "id INT", "on_bad_record": "dlq"}
OWNED = r"are the dead letters of another job, .*Give --dlq another place"


@pytest.fixture(params=["directory", "store"])
def dead(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place for dead letters."""
    return request.getfixturevalue("s3").url("dead") if request.param == "store" else str(tmp_path / "dead")


def bad_record(cluster: EmbeddedCluster) -> None:
    cluster.produce("orders", [b"nonsense"], partition=0)


def test_a_second_job_is_refused_before_there_are_dead_letters(
    cluster: EmbeddedCluster, tmp_path: Path, dead: str
) -> None:
    cluster.produce("orders", [b'{"id": 1}'], partition=0)
    settings = {**BAD, "dlq": f"parquet:{dead}"}
    run(cluster, tmp_path / "one", **settings)
    bad_record(cluster)
    with pytest.raises(SinkError, match=OWNED):
        run(cluster, tmp_path / "two", **settings)
    assert not (tmp_path / "two" / "sink" / "topic=orders").exists()
    assert run(cluster, tmp_path / "one", **settings).results[0].bad_records == 1
    assert manifest.count(dead) == 1
    bad_record(cluster)
    assert run(cluster, tmp_path / "one", **settings).results[0].bad_records == 1
    assert manifest.count(dead) == 2


def test_of_two_jobs_that_begin_at_once_one_has_the_place(
    cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have looked before either has claimed it."""
    bad_record(cluster)
    settings = {**BAD, "dlq": f"parquet:{s3.url('dead')}"}
    begin = preflight.Prepared.claim

    def slowly(prepared: preflight.Prepared) -> preflight.Prepared:
        monkeypatch.setattr(preflight.Prepared, "claim", begin)
        run(cluster, tmp_path / "two", **settings)
        return begin(prepared)

    monkeypatch.setattr(preflight.Prepared, "claim", slowly)
    with pytest.raises(SinkError, match=OWNED):
        run(cluster, tmp_path / "one", **settings)
    [letter] = manifest.read_all(s3.url("dead"))
    assert [letter.job] == [whole.job for whole in manifest.read_all(tmp_path / "two" / "sink")]


def test_jobs_of_one_name_in_two_tables_are_two(cluster: EmbeddedCluster, tmp_path: Path, dead: str) -> None:
    cluster.produce("orders", [b'{"id": 1}'], partition=0)
    settings = {**BAD, "dlq": f"parquet:{dead}", "job": "nightly"}
    DeltaLake(tmp_path / "one").run(cluster, **settings)
    with pytest.raises(SinkError, match=OWNED):
        DeltaLake(tmp_path / "two").run(cluster, **settings)


def test_what_lands_beside_the_job_keeps_its_dead_letters_there(
    cluster: EmbeddedCluster, tmp_path: Path, dead: str
) -> None:
    bad_record(cluster)
    settings = {**BAD, "dlq": f"parquet:{dead}"}
    run(cluster, tmp_path / "one", **settings, start="latest")
    run(cluster, tmp_path / "two", **{**settings, "dlq": f"parquet:{tmp_path / 'other'}"}, start="latest")
    with pytest.raises(SinkError, match=OWNED):
        run(cluster, tmp_path / "two", **settings, backfill=True)
    assert run(cluster, tmp_path / "one", **settings, backfill=True).results[0].bad_records == 1
    replay = {"from_dlq": f"parquet:{dead}", "format": "string"}
    assert run(cluster, tmp_path / "one", **replay).results[0].rows == 1


def test_a_plan_says_it_and_claims_nothing(cluster: EmbeddedCluster, tmp_path: Path, dead: str) -> None:
    bad_record(cluster)
    settings = {**BAD, "dlq": f"parquet:{dead}"}
    for name in ("one", "two"):
        mine = given(cluster.bootstrap_servers, tmp_path / name, **settings)
        ingest.plan(IngestSettings.parse(mine))
    run(cluster, tmp_path / "two", **settings)
    with pytest.raises(SinkError, match="of another job"):
        ingest.plan(IngestSettings.parse(given(cluster.bootstrap_servers, tmp_path / "one", **settings)))


def test_a_job_in_a_table_whose_checkpoint_is_lost_goes_on_with_its_dead_letters(
    cluster: EmbeddedCluster, tmp_path: Path, dead: str
) -> None:
    lake = DeltaLake(tmp_path)
    settings = {**BAD, "dlq": f"parquet:{dead}"}
    for _ in range(2):
        bad_record(cluster)
        assert lake.run(cluster, **settings, checkpoint=str(tmp_path / str(_))).results[0].bad_records == 1
    assert manifest.count(dead) == 2

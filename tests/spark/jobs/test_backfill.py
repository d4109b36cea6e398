"""A backfill beside a job: what each of the two lands, so that no record counts twice."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError, SinkError
from kclient.spark.sink import manifest
from tests.spark.jobs import killing
from tests.spark.jobs.support import Landed, assert_exactly_once, fill, given, offsets_file, run

pytestmark = pytest.mark.timeout(90)


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 1}) as running:
        yield running


@pytest.mark.spec("SP-82", "SP-89")
@pytest.mark.parametrize("topics", ["orders", "order.*"])
def test_a_partition_that_appears_is_the_jobs(cluster: EmbeddedCluster, tmp_path: Path, topics: str) -> None:
    wanted = fill(cluster, 5)
    run(cluster, tmp_path, topics=topics)
    cluster.add_partitions("orders", 2)
    cluster.produce("orders", [b"new"] * 5, partition=1)
    assert run(cluster, tmp_path, topics=topics, backfill=True).results[0].rows == 0
    ends = offsets_file(tmp_path, 0, 3)
    with pytest.raises(SinkError, match="The job of this checkpoint lands orders-1 from 0 on"):
        run(cluster, tmp_path, topics=topics, backfill=True, end=ends)
    run(cluster, tmp_path, topics=topics)
    assert_exactly_once(tmp_path / "sink", wanted + [Landed("orders", 1, n, b"new") for n in range(5)])


@pytest.mark.spec("SP-89")
def test_a_backfill_of_a_topic_that_the_job_does_not_read(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    wanted = fill(cluster, 5)
    run(cluster, tmp_path)
    cluster.create_topic("clicks", 1)
    wanted += fill(cluster, 5, topic="clicks")
    run(cluster, tmp_path, topics="clicks", backfill=True)
    assert_exactly_once(tmp_path / "sink", wanted)
    [whole] = manifest.read_all(tmp_path / "sink", "backfill-")
    assert all(file.path.endswith(f"-{whole.name}.parquet") for file in whole.files)


@pytest.mark.spec("SP-82", "SP-89")
def test_a_job_that_was_killed_before_its_start_was_kept(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    wanted = fill(cluster, 5)
    settings = given(cluster.bootstrap_servers, tmp_path)
    assert killing.killed(settings, "after the job is claimed", 0) == -9
    run(cluster, tmp_path, backfill=True)
    with pytest.raises(SinkError, match="would count twice"):
        run(cluster, tmp_path)
    assert_exactly_once(tmp_path / "sink", wanted)
    wanted += fill(cluster, 5, first=5)
    starts = offsets_file(tmp_path, 5)
    run(cluster, tmp_path, start=starts)
    assert_exactly_once(tmp_path / "sink", wanted)


@pytest.mark.spec("SP-82", "SP-89")
def test_a_mistyped_checkpoint_lands_nothing_beside_a_job(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    fill(cluster, 5)
    run(cluster, tmp_path, start="latest")
    wanted = fill(cluster, 5, first=5)
    run(cluster, tmp_path)
    wanted += fill(cluster, 5, first=10)
    starts = offsets_file(tmp_path, 10)
    mistyped = str(tmp_path / "checkpiont")
    with pytest.raises(SinkError, match="holds 1 batch of another job"):
        run(cluster, tmp_path, checkpoint=mistyped, backfill=True, start=starts)
    assert not Path(mistyped).exists()
    run(cluster, tmp_path)
    assert_exactly_once(tmp_path / "sink", wanted)


@pytest.mark.spec("SP-82", "SP-89")
def test_a_job_lands_nothing_that_a_mistyped_checkpoint_has(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """Before the job's first batch the sink does not say whose it is."""
    fill(cluster, 5)
    run(cluster, tmp_path, start="latest")
    wanted = fill(cluster, 5, first=5)
    run(cluster, tmp_path, checkpoint=str(tmp_path / "checkpiont"), backfill=True)
    with pytest.raises(SinkError, match="They would count twice") as refused:
        run(cluster, tmp_path)
    [name] = manifest.names(tmp_path / "sink")
    assert f"delete _manifest/{name}.json" in str(refused.value)
    (tmp_path / "sink" / "_manifest" / f"{name}.json").unlink()
    run(cluster, tmp_path)
    assert_exactly_once(tmp_path / "sink", wanted)


def test_the_same_offsets_of_other_logs_are_no_backfill_that_has_landed(tmp_path: Path) -> None:
    """Without a job the sink alone says what has landed."""
    start, end = offsets_file(tmp_path, 0), offsets_file(tmp_path, 5)
    again: dict[str, Any] = {"backfill": True, "start": start, "end": end}
    with EmbeddedCluster(topics={"orders": 1}) as cluster, EmbeddedCluster(topics={"orders": 1}) as other:
        wanted = fill(cluster, 5)
        fill(other, 5)
        run(cluster, tmp_path, **again)
        assert run(cluster, tmp_path, **again).results[0].rows == 0
        with pytest.raises(
            SinkError, match="of another cluster or a recreated topic, be taken for each other"
        ):
            run(other, tmp_path, **again)
        cluster.recreate_topic("orders")
        fill(cluster, 5)
        with pytest.raises(SinkError, match=r"its manifest backfill-.* covers these offsets"):
            run(cluster, tmp_path, **again)
    assert_exactly_once(tmp_path / "sink", wanted)


@pytest.mark.spec("SP-58", "SP-83", "SP-89")
def test_a_backfill_is_of_the_jobs_logs_and_into_its_sink(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    fill(cluster, 5)
    run(cluster, tmp_path, start="latest")
    wanted = fill(cluster, 5, first=5)
    run(cluster, tmp_path)
    with pytest.raises(ConfigError, match="its sink is"):
        run(cluster, tmp_path, sink=f"parquet:{tmp_path / 'other'}", backfill=True)
    assert not (tmp_path / "other").exists()
    with EmbeddedCluster(topics={"orders": 1}) as other:
        fill(other, 5)
        with pytest.raises(ConfigError, match="its cluster id is"):
            run(other, tmp_path, backfill=True)
    cluster.recreate_topic("orders")
    fill(cluster, 5)
    with pytest.raises(ConfigError, match="orders was deleted and recreated"):
        run(cluster, tmp_path, backfill=True)
    assert_exactly_once(tmp_path / "sink", wanted)
    shutil.move(tmp_path / "sink", tmp_path / "unmounted")
    with pytest.raises(SinkError, match="does not hold batch 0"):
        run(cluster, tmp_path, backfill=True)
    assert not (tmp_path / "sink").exists()


@pytest.mark.spec("SP-82", "SP-88", "SP-89")
@pytest.mark.parametrize("beside", ["backfill", "from_dlq"])
def test_dead_letters_do_not_land_in_the_sink_of_another_job(
    cluster: EmbeddedCluster, tmp_path: Path, beside: str
) -> None:
    wanted = fill(cluster, 5)
    run(cluster, tmp_path / "other")
    text: dict[str, Any] = {"format": "json", "schema": "id INT", "on_bad_record": "dlq"}
    dead = f"parquet:{tmp_path / 'dead'}"
    run(cluster, tmp_path, **text, dlq=dead)
    what: dict[str, Any] = {"backfill": True} if beside == "backfill" else {"from_dlq": dead}
    with pytest.raises(SinkError, match="holds 1 batch of another job"):
        run(cluster, tmp_path, **text, **what, dlq=f"parquet:{tmp_path / 'other' / 'sink'}")
    assert_exactly_once(tmp_path / "other" / "sink", wanted)


@pytest.mark.spec("SP-88", "SP-89")
def test_a_job_and_its_backfill_share_a_directory_of_dead_letters(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    text: dict[str, Any] = {"format": "json", "schema": "id INT", "on_bad_record": "dlq"}
    text["dlq"] = f"parquet:{tmp_path / 'dead'}"
    fill(cluster, 5)
    run(cluster, tmp_path, **text, start="latest")
    fill(cluster, 5, first=5)
    run(cluster, tmp_path, **text)
    for count in (5, 0):
        assert run(cluster, tmp_path, **text, backfill=True).results[0].bad_records == count
    assert manifest.count(tmp_path / "dead") == 10


@pytest.mark.spec("SP-57", "SP-89")
def test_a_log_that_was_cut_to_before_the_backfill_continues_where_that_is_accepted(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    fill(cluster, 40)
    run(cluster, tmp_path, start="latest")
    fill(cluster, 10, first=40)
    run(cluster, tmp_path)
    run(cluster, tmp_path, backfill=True)
    cluster.truncate("orders", 0, 20)
    run(cluster, tmp_path, fail_on_data_loss=False)
    fill(cluster, 5)
    assert run(cluster, tmp_path).results[0].rows == 5

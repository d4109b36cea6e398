"""`kclient ingest verify` and `gc` of tables and jobs whose names are not right: they say where to look."""

from __future__ import annotations

from pathlib import Path

import pytest

from kclient.embedded import EmbeddedCluster
from tests.cli.support import call
from tests.spark.jobs.delta_job_support import DeltaLake
from tests.spark.jobs.iceberg_support import TABLE, Lake
from tests.spark.jobs.table_support import TableLake


@pytest.fixture(params=[Lake, DeltaLake])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> TableLake:
    made: TableLake = request.param(tmp_path)
    return made


def typed(lake: TableLake, sink: str) -> list[str]:
    """A sink as it is typed, with its catalog."""
    return ["--sink", sink, *(["--catalog", str(lake.catalog_file)] if isinstance(lake, Lake) else [])]


@pytest.mark.parametrize("command", [["gc"], ["verify", "--job", "x"]])
def test_a_table_that_is_not_there_is_looked_for_by_its_name(
    lake: TableLake, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    sink = f"iceberg:{TABLE}s" if isinstance(lake, Lake) else f"delta:{lake.root / 'none'}"
    done = call(capsys, "ingest", *command, *typed(lake, sink))
    assert done.code == 2
    assert f"There is no table {sink}. Look at the name in --sink, and " in done.err
    assert "dropped" not in done.err


def test_a_job_that_has_landed_nothing_is_told_which_have(
    lake: TableLake, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"job-{number}" for number in range(7)]
    with EmbeddedCluster(topics={"orders": 1}) as cluster:
        cluster.produce("orders", [b"x"])
        for name in names:
            lake.run(cluster, job=name, checkpoint=str(lake.root / f"checkpoint-{names.index(name)}"))
    done = call(capsys, "ingest", "verify", "--job", "nope", *typed(lake, str(lake.settings()["sink"])))
    assert done.code == 2
    assert (
        f"holds nothing of the job nope, but of {', '.join(names[:5])} and 2 more. Give the --checkpoint"
        in done.err
    )

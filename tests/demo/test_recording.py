"""A recording holds what happened when, and is the same after a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.recording import Owner, Recording, Span
from tests.demo.runs import a_run, numbers


def test_a_recording_survives_its_file(tmp_path: Path) -> None:
    run = a_run()
    run.save(tmp_path / "run.json")
    assert Recording.load(tmp_path / "run.json") == run


def test_a_process_that_begins_something_is_done_with_what_it_did() -> None:
    run = a_run(spans=[])
    run.begin("ingest", "starts", 1.0)
    run.begin("ingest", "lands", 5.0)
    run.begin("broker 1", "serves", 5.5)
    run.finish("ingest", 7.0, killed=True)
    assert run.spans == [
        Span("ingest", "starts", 1.0, 5.0),
        Span("ingest", "lands", 5.0, 7.0, killed=True),
        Span("broker 1", "serves", 5.5),
    ]


def test_partitions_are_a_members_until_it_has_them_no_more() -> None:
    run = a_run(owners=[])
    run.owns("A", [0, 1], 1.0)
    run.owns("B", [1], 2.0)
    run.owns("A", [0], 2.1)  # recorded after the other owner's gain
    run.owns("A", [0], 3.0)
    assert run.owners == [Owner(0, "A", 1.0), Owner(1, "A", 1.0, 2.1), Owner(1, "B", 2.0)]


@pytest.mark.parametrize("wrong", ["published", "consumed", "committed", "parquet", "lag", "expected"])
def test_one_number_that_differs_is_enough(wrong: str) -> None:
    assert numbers().agree
    assert "all five numbers agree" in str(numbers())
    assert not numbers(**{wrong: 1}).agree
    assert "DIFFER" in str(numbers(**{wrong: 1}))

"""What `make chaos` prints, keeps and returns, with cycles that say what a test wants."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from localkafka import KafkaCluster
from tests.chaos import __main__ as command
from tests.chaos.cycle import Result
from tests.chaos.findings import Finding
from tests.chaos.plan import draw
from tests.chaos.valid_history import honest

LOST = Finding("I-02", "unseen: (0, 7) came to nobody")


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """What the next cycles come to: findings, or an error."""
    coming: list[Any] = []

    class Cycle:
        def __init__(self, kafka: KafkaCluster, plan: object, name: str, folder: Path) -> None:
            (folder / "chaos.journal").touch()

        def run(self) -> Result:
            outcome = coming.pop(0)
            if isinstance(outcome, AssertionError):
                raise outcome
            return Result(outcome, honest().history(), 1.0)

    class Kafka:
        def heal(self) -> None: ...

    monkeypatch.setattr(command, "Cycle", Cycle)
    monkeypatch.setattr(command, "KafkaCluster", lambda *_: nullcontext(Kafka()))
    monkeypatch.setattr(command.tempfile, "tempdir", str(tmp_path))
    return coming


def test_all_is_well(outcomes: list[Any], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    outcomes += [[], []]
    assert command.main(["--cycles", "2", "--seed", "5"]) == 0
    output = capsys.readouterr().out
    assert "seed 5, 2 cycles" in output
    assert f"cycle 0: {draw(5, 0)}" in output
    assert f"cycle 1: {draw(5, 1)}" in output
    assert "6 records, 0 of them again, 4 commits, 3 assigned, 3 revoked, 0 lost" in output
    assert "0 failed" in output
    assert list(tmp_path.iterdir()) == []


def test_a_broken_promise_and_a_member_that_ends_are_reported_and_their_journals_kept(
    outcomes: list[Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    outcomes += [[], [LOST], AssertionError("ours-1 ended with 1")]
    assert command.main(["--cycles", "3", "--seed", "5", "--first", "4"]) == 1
    output = capsys.readouterr().out
    assert "I-02 is broken 1 times" in output
    assert LOST.text in output
    assert "ours-1 ended with 1" in output
    assert "3 cycles" in output
    assert "2 failed: seed 5" in output
    for number in (5, 6):
        assert f"make chaos CYCLES=1 SEED=5 FIRST={number}" in output
    kept = sorted(path.name.rpartition("-")[0] for path in tmp_path.iterdir())
    assert kept == ["chaos-5-5", "chaos-5-6"]


def test_without_a_seed_one_is_drawn_and_reported(
    outcomes: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes += [[], []]
    assert command.main(["--cycles", "1"]) == command.main(["--cycles", "1"]) == 0
    seeds = [line for line in capsys.readouterr().out.splitlines() if line.startswith("seed")]
    assert len(set(seeds)) == 2

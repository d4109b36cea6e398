"""A name that leads to a device without an end, or to a pipe without a writer, ends in an error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.hostile.bounded import run_bounded
from tests.hostile.local_files import WAYS

HERE = "tests.hostile.local_files"


@pytest.mark.parametrize("way", WAYS)
def test_an_endless_device_is_not_read_to_its_end(way: str) -> None:
    outcome = run_bounded(
        f"{HERE}:problem_with", way, "/dev/zero", seconds=2, peak_mb=200, address_space_mb=1_000
    )
    assert "it is larger than" in outcome.result or "its end does not come" in outcome.result


@pytest.mark.parametrize("way", WAYS)
def test_a_pipe_without_a_writer_is_not_waited_for(way: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    outcome = run_bounded(f"{HERE}:problem_with", way, str(tmp_path / "pipe"), seconds=2, peak_mb=200)
    assert "it is a pipe, and nothing writes to it" in outcome.result


def test_a_file_that_is_too_large_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"#" * (1 << 20) + b"\n")
    outcome = run_bounded(f"{HERE}:problem_with", "properties", str(path), seconds=2, peak_mb=200)
    assert "it is larger than 1 MiB" in outcome.result


def test_a_pipe_with_a_writer_is_read(tmp_path: Path) -> None:
    outcome = run_bounded(f"{HERE}:content_of_pipe", "hunter2\n", str(tmp_path), seconds=5, peak_mb=200)
    assert outcome.result == "hunter2"

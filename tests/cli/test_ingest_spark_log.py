"""Where Spark's own output goes if nobody says it."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path

import pytest

from kclient.cli.ingest import log_beside


def test_beside_a_checkpoint_in_a_directory() -> None:
    assert log_beside("/lake/c") == "/lake/c/kclient/spark.log"


def test_of_a_checkpoint_in_an_object_store_in_a_temporary_file_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not below a directory `s3:` of the working directory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = Path(log_beside("s3://lake/c"))
    assert path.parent == tmp_path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert str(path) in capsys.readouterr().err

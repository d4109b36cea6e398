"""The committed modules are what the schemas stand for, and `--check` names those that are not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codegen.__main__ import main

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"


def test_generated_is_what_the_schemas_stand_for() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "codegen", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_generated_is_formatted_by_construction() -> None:
    command = [sys.executable, "-m", "ruff", "format", "--check", "--no-cache", str(ROOT / "generated")]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """The command's arguments for a copy of the golden schemas and output."""
    shutil.copytree(GOLDEN, tmp_path / "golden")
    return ["--schemas", f"{tmp_path}/golden/schemas", "--output", f"{tmp_path}/golden/output"]


def test_check_is_content_with_fresh_output(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", *arguments]) == 0
    assert capsys.readouterr().err == ""


def test_check_names_stale_missing_and_extra_files(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    output = Path(arguments[-1])
    (output / "depot_key.py").write_text("edited by hand\n", "utf-8")
    (output / "index.py").unlink()
    (output / "gone_request.py").write_text("", "utf-8")
    assert main(["--check", *arguments]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == ["missing: index.py", "stale: depot_key.py", "extra: gone_request.py"]
    assert (output / "depot_key.py").read_text("utf-8") == "edited by hand\n"  # it only looks


def test_a_run_writes_what_differs_and_removes_what_is_extra(arguments: list[str]) -> None:
    output = Path(arguments[-1])
    (output / "depot_key.py").write_text("edited by hand\n", "utf-8")
    (output / "gone_request.py").write_text("", "utf-8")
    assert main(arguments) == 0
    assert main(["--check", *arguments]) == 0
    assert not (output / "gone_request.py").exists()


def test_a_field_added_to_a_schema_is_all_that_it_takes(arguments: list[str]) -> None:
    schema = Path(arguments[1]) / "ParcelRequest.json"
    fields = '"fields": [\n    { "name": "Clerk"'
    colour = (
        '"fields": [\n    { "name": "Colour", "type": "string", "versions": "5+" },\n    { "name": "Clerk"'
    )
    assert fields in schema.read_text("utf-8")
    schema.write_text(schema.read_text("utf-8").replace(fields, colour), "utf-8")
    assert main(["--check", *arguments]) == 1
    assert main(arguments) == 0
    module = (Path(arguments[-1]) / "parcel_request.py").read_text("utf-8")
    assert '    colour: str = ""\n' in module
    assert "    5: (read_v5, write_v5),\n" in module

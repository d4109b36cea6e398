"""The public types under mypy and pyright: what they infer of keys and values, and which settings they refuse.

The checker of pyright is basedpyright, the same engine: its wheel brings the Node.js that it needs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RIGHT, WRONG = HERE / "right.py", HERE / "wrong.py"
Errors = list[tuple[int, str]]
"""Line and text of each."""


def mypy(path: Path) -> Errors:
    """Run mypy, as strict as it can be, with no configuration."""
    command = ["-m", "mypy", "--strict", "--config-file=", "--no-error-summary", "--hide-error-context"]
    cache = f"--cache-dir={ROOT / '.cache' / 'mypy-of-users'}"
    out = run(*command, cache, str(path), cwd=HERE).stdout
    return [(int(line), text) for line, text in re.findall(r"^\S+?:(\d+): error: (.*)$", out, re.MULTILINE)]


def pyright(path: Path) -> Errors:
    """Run basedpyright with the rules that pyright calls strict."""
    found = basedpyright("--project", str(HERE / "pyrightconfig.json"), str(path))["generalDiagnostics"]
    return [(each["range"]["start"]["line"] + 1, each["message"]) for each in found]


def basedpyright(*arguments: str) -> Any:
    return json.loads(run("-m", "basedpyright", "--outputjson", *arguments, cwd=HERE).stdout)


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a module of this environment; type checkers exit with 1 if they have found errors."""
    path = os.pathsep.join(
        (str(Path(sys.executable).parent), os.environ["PATH"])
    )  # pyright asks the first python
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done


checkers = pytest.mark.parametrize("check", [mypy, pyright])


@checkers
def test_keys_and_values_have_the_types_of_the_deserializers(check: Callable[[Path], Errors]) -> None:
    assert check(RIGHT) == []


@checkers
def test_wrong_settings_and_uses_are_refused(check: Callable[[Path], Errors]) -> None:
    marked = {number for number, line in enumerate(WRONG.read_text().splitlines(), 1) if "  # wrong" in line}
    assert {line for line, _ in check(WRONG)} == marked


def test_every_public_name_has_a_type() -> None:
    """As `pyright --verifytypes`, without what pyarrow, pyspark and others leave without types."""
    report = basedpyright("--verifytypes", "kclient", "--ignoreexternal")["typeCompleteness"]
    untyped = [
        each["name"] for each in report["symbols"] if each["isTypeAmbiguous"] or not each["isTypeKnown"]
    ]
    assert untyped == []
    assert report["completenessScore"] == 1
    assert "kclient.Consumer" in {each["name"] for each in report["symbols"]}

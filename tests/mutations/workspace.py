"""A copy of the tree in which edits are applied, one at a time, and the tests of their rows are run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import Final

import attrs

from tests.mutations.edit import ROOT, Edit, EditError

SECONDS: Final = 600  # for the tests of one row; one that hangs counts as noticed
LEFT_OUT: Final = "not kafka"


class Outcome(Enum):
    """What became of an edit."""

    NOTICED = "noticed"
    HIDDEN = "NOT noticed"
    VOID = "void"  # it does not apply, no test names its rows, or the tests could not be run


@attrs.frozen
class Result:
    """The outcome of one edit, with the test that failed first or the reason."""

    edit: Edit
    outcome: Outcome
    detail: str

    def __str__(self) -> str:
        return f"{self.edit.name:24} {' '.join(self.edit.rows):20} {self.outcome.value:12} {self.detail}"


def index_rows(collect: bool = True) -> dict[str, list[str]]:
    """Return the test files that name each row, of the whole suite without tests on a real Kafka.

    Without `collect`, return what the last collection wrote.
    """
    path = ROOT / ".cache" / "spec-index.json"
    if collect:
        _collect(path)
    index: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
    return index


def _collect(path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-m",
        LEFT_OUT,
        f"--spec-index={path}",  # one argument: pytest looks for conftest.py beside a path that exists
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the tests cannot be collected:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


class Workspace:
    """One copy of the tracked files, and of the extension, in a folder that the caller removes.

    The tests run with the Python decoder, which edits can break, but for those that ask for the native one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        extension = (
            str(path.relative_to(ROOT)) for path in (ROOT / "kclient" / "records").glob("_native*.so")
        )
        for name in (*listed.stdout.split("\0"), *extension):
            if name and (ROOT / name).exists():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)

    def judge(self, edit: Edit, index: dict[str, list[str]]) -> Result:
        """Apply the edit, run the tests of each of its rows until one fails, and undo it."""
        files = {row: [*index.get(row, ()), *edit.tests] for row in edit.rows}
        if untested := [row for row, named in files.items() if not named]:
            return Result(edit, Outcome.VOID, f"no test names {' and '.join(untested)}")
        path = self.folder / edit.file
        before = path.read_text(encoding="utf-8")
        try:
            path.write_text(edit.apply(before), encoding="utf-8")
        except EditError as exc:
            return Result(edit, Outcome.VOID, str(exc))
        try:
            return self._judge_rows(edit, files)
        finally:
            path.write_text(before, encoding="utf-8")

    def _judge_rows(self, edit: Edit, files: dict[str, list[str]]) -> Result:
        """An edit is noticed when each of its rows has a test that fails."""
        details = []
        for row, named in files.items():
            outcome, detail = self._run(row, named, whole=bool(edit.tests))
            if outcome is not Outcome.NOTICED:
                return Result(edit, outcome, f"{row}: {detail}")
            details.append(detail)
        return Result(edit, Outcome.NOTICED, " ".join(dict.fromkeys(details)))

    def _run(self, row: str, files: list[str], *, whole: bool) -> tuple[Outcome, str]:
        """Run the tests of a row until one fails; `whole`: those on a real Kafka, too."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "--no-header",
            "-p",
            "no:cacheprovider",
            *files,
        ]
        command += ["--spec-rows", row, *([] if whole else ["-m", LEFT_OUT])]
        env = os.environ | {
            "PYTHONPATH": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "KCLIENT_DECODER": "python",
        }
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # with the processes that the tests start
        )
        try:
            output, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return Outcome.NOTICED, f"the tests did not end within {SECONDS} s"
        return _outcome(process.returncode, output)


def _outcome(code: int, output: str) -> tuple[Outcome, str]:
    """pytest ends with 1 when a test failed, with 0 when all passed; all else is about the run, not the edit."""
    lines = [line for line in output.splitlines() if line.strip()]
    if code == 1:
        failed = next((line for line in lines if line.startswith(("FAILED ", "ERROR "))), lines[-1])
        return Outcome.NOTICED, failed.partition(" ")[2].partition(" - ")[0]
    if code == 0:
        return Outcome.HIDDEN, lines[-1]
    return Outcome.VOID, f"pytest ended with {code}: {' '.join(lines[-3:])[-300:]}"

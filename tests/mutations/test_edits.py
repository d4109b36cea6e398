"""The edits fit the code, and the run distinguishes a noticed edit from a hidden one."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.mutations.edit import ROOT, Edit, EditError, load_edits
from tests.mutations.workspace import Outcome, Workspace
from tests.spec_plugin import known_rows

EVERY = list(load_edits())
SOURCE = "def double(number):\n    return 2 * number\n"
TEST = """
import pytest
from sample.double import double

@pytest.mark.spec("S0-01")
def test_two(): assert double(2) == 4

@pytest.mark.spec("S0-03")
def test_zero(): assert double(0) == 0
"""


@pytest.mark.parametrize("edit", EVERY, ids=[edit.name for edit in EVERY])
def test_an_edit_applies(edit: Edit) -> None:
    edit.apply((ROOT / edit.file).read_text(encoding="utf-8"))


def test_two_edits_break_each_row_of_positions_fetches_commits_and_groups() -> None:
    edits = Counter(row for edit in EVERY for row in edit.rows)
    rows = [row for row in known_rows() if re.fullmatch(r"S[0-4]-\d\d", row)]
    assert len(rows) == 268
    assert [row for row in rows if edits[row] < 2] == []


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A tree of two files."""
    monkeypatch.setattr(Workspace, "__init__", lambda self: setattr(self, "folder", tmp_path))
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample/__init__.py").touch()
    (tmp_path / "sample/double.py").write_text(SOURCE)
    (tmp_path / "test_double.py").write_text(TEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = spec(*ids): rows\n  kafka: a real one\n")
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path.append({str(ROOT)!r})\npytest_plugins = ['tests.spec_plugin']\n"
    )
    return Workspace()  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("old", "new", "rows", "outcome", "detail"),
    [
        ("2 *", "3 *", ("S0-01",), Outcome.NOTICED, "test_double.py::test_two"),
        ("2 * number", "number * 2", ("S0-01",), Outcome.HIDDEN, "1 passed"),
        ("2 *", "2 +* (", ("S0-01",), Outcome.VOID, "does not compile"),
        ("4 *", "2 *", ("S0-01",), Outcome.VOID, "stands 0 times"),
        ("2 *", "3 *", ("S0-02",), Outcome.VOID, "no test names S0-02"),
        ("2 *", "3 *", ("S0-01", "S0-03"), Outcome.HIDDEN, "S0-03: 1 passed"),
        ("2 *", "1 + 2 *", ("S0-01", "S0-03"), Outcome.NOTICED, "test_double.py::test_zero"),
    ],
)
def test_the_outcome_of_an_edit(
    workspace: Workspace, old: str, new: str, rows: tuple[str, ...], outcome: Outcome, detail: str
) -> None:
    edit = Edit("example:1", rows, "sample/double.py", old, new)
    result = workspace.judge(edit, {"S0-01": ["test_double.py"], "S0-03": ["test_double.py"]})
    assert (result.outcome, detail in result.detail) == (outcome, True), result
    assert (workspace.folder / "sample/double.py").read_text() == SOURCE


def test_an_edit_that_lacks_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text('[[edit]]\nrows = ["S0-01"]\nfile = "sample/double.py"\nold = "2"\n')
    with pytest.raises(EditError, match=r"x:1: 'new' is missing"):
        list(load_edits(tmp_path))

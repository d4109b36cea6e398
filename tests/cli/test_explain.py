"""`kclient explain`: the page of every error, also without the extra `cli`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from kclient import errors
from tests.cli.support import call, run

PAGES = Path(__file__).parents[2] / "docs" / "errors"


@pytest.mark.parametrize("code", ["KC-601", "kc-601", "KC601", "601"])
def test_the_page_of_a_code_is_printed(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "explain", code) == (0, (PAGES / "KC-601.md").read_text(), "")


def test_the_command_of_an_error_explains_it(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, command = str(errors.UnknownTopicError("There is no topic.")).partition("] kclient ")
    assert call(capsys, *command.split()).out.startswith("# KC-301 · UnknownTopicError\n")


def test_without_a_code_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    names = {page.stem for page in PAGES.glob("KC-*.md")}
    found = call(capsys, "explain", "--json").events
    assert {one["code"] for one in found} == names
    assert all(one["class"] and one["text"] for one in found)
    assert len(call(capsys, "explain").out.splitlines()) == len(names) + 1


@pytest.mark.parametrize("code", ["KC-999", "601 ", "../../pyproject", "KC-60"])
def test_what_is_no_code_ends_with_2(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "explain", code)
    assert (done.code, done.out) == (2, "")
    assert f"{code} is not the code of an error" in done.err


def test_it_works_without_the_extra(tmp_path: Path) -> None:
    (tmp_path / "cyclopts.py").write_text("raise ModuleNotFoundError('gone', name='cyclopts')")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    assert run("explain", "KC-601", PYTHONPATH=path) == (0, (PAGES / "KC-601.md").read_text(), "")
    done = run("explain", "KC-999", PYTHONPATH=path)
    assert done.code == 2
    assert "KC-999 is not the code of an error" in done.err

"""The habits of the house that no linter knows: what the tree may hold, and what each file may grow to."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OWN_CODE = ("kclient", "codegen", "localkafka", "tools", "benchmarks", "demo")
LONGEST_FILE = 450  # a guard, not an aim: most have 150–200 lines
LARGEST_FILE_BYTES = 2_000_000

# Paths of one machine, and addresses of package registries: those are chosen by whoever installs.
MACHINE_BOUND = re.compile(
    r"(?<![\w.])/(?:work|root|home/\w+|Users/\w+)/"
    r"|\b(?:pypi|pythonhosted)\.org\b|\brepo1?\.maven\b|\bmaven\.apache\.org/(?!POM)|--?(?:extra-)?index-url"
)


def tracked() -> list[Path]:
    """The files under version control, or all of them in a tree without it."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("this tree is not a git checkout")
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_nothing_is_bound_to_a_machine_or_a_registry() -> None:
    places = []
    for path in tracked():
        if path == Path(__file__) or path.suffix in {".gz", ".bin"}:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if MACHINE_BOUND.search(line):
                places.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert places == []


def test_no_file_is_too_large_to_review() -> None:
    large = {
        str(path.relative_to(ROOT)): size
        for path in tracked()
        if not path.is_symlink() and (size := path.stat().st_size) > LARGEST_FILE_BYTES
    }
    assert large == {}


def test_no_module_grows_beyond_one_idea() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in tracked()
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in OWN_CODE
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_rooms_import_only_downwards() -> None:
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout


def test_make_help_tells_every_target() -> None:
    shown = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    [phony] = re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert [target for target in phony.split() if f"make {target} " not in shown] == []


def test_every_logger_is_taken_where_records_are_made_printable() -> None:
    found = subprocess.run(
        ["grep", "-rn", r"getLogger(", "kclient", "pyspark_kclient", "--include=*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    others = [line for line in found if not re.match(r"kclient/(log|__init__)\.py:", line)]
    assert others == []

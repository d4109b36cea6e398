"""Rules of the repository that no linter checks: unique class names, and the texts and files that the tree may hold."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LARGEST_FILE_BYTES = 2_000_000

# Paths of one machine, and addresses of package registries: those are chosen at installation.
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


def package_files() -> list[Path]:
    """The handwritten files of the package and of the generator."""
    ours = [path for path in tracked() if path.relative_to(ROOT).parts[0] in ("kclient", "codegen")]
    return [path for path in ours if path.suffix in {".py", ".j2"} and "generated" not in path.parts]


def test_a_class_name_exists_once() -> None:
    places: dict[str, list[str]] = {}
    for path in package_files():
        if path.suffix == ".py":
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    twice = {name for name, files in places.items() if len(files) > 1}
    assert twice == set(), {name: places[name] for name in twice}


def test_no_id_of_the_specification_stands_in_the_package() -> None:
    """Tests name the rows that they prove; an id in the package is a second place that nothing keeps true."""
    ids = re.compile(r"\b(?:S[0-4]-\d\d|[BC]\.\d+(?:\.\d+)*|[ADFHIMU]-\d\d|S[PTG]-\d\d)\b")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in package_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if ids.search(line)
    ]
    assert found == []


def test_packages_import_only_from_packages_below_them() -> None:
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout


def test_make_help_lists_every_target() -> None:
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

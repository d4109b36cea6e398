"""The commands of docs/spark-cluster.md, for a test that does as the page says."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.docs.blocks import python_blocks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "spark-cluster.md").read_text(encoding="utf-8")
SHIPPED = (
    "pyproject.toml",
    "setup.py",
    "README.md",
    "LICENSE",
    "generated",
    "docs/errors",
    "kclient",
    "pyspark_kclient",
)


def command(beginning: str) -> str:
    """The one shell block that begins so."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (found,) = [block for block in blocks if block.startswith(beginning)]
    return str(found)


def submission(here: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The environment and the options of `spark-submit`, without the master; `here` says what stands for a path."""
    text = command("PYSPARK_PYTHON=").replace("\\\n", " ")
    for path, instead in here.items():
        assert path in text
        text = text.replace(path, instead)
    words = shlex.split(text)
    begin = words.index("spark-submit")
    assert words[begin + 1] == "--master"
    environment = dict(word.split("=", 1) for word in words[:begin])
    return environment, words[begin + 3 : words.index("job.py")]


def source_options() -> dict[str, Any]:
    """The `options` of the page's job."""
    (job,) = python_blocks(PAGE)
    (found,) = [
        node.value
        for node in ast.parse(job).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "options"
    ]
    options: dict[str, Any] = ast.literal_eval(found)
    return options


def package(folder: Path) -> Path:
    """kclient.zip, made as the page says, of a copy of this tree and without a network."""
    tree = folder / "kclient-kafka"
    tree.mkdir()
    for name in SHIPPED:
        ignored = shutil.ignore_patterns("__pycache__")
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tree / name)
    offline = {"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run(
        ["bash", "-ec", command("pip wheel")],
        cwd=tree,
        env={**os.environ, **offline, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        timeout=120,
        check=True,
    )
    return tree / "kclient.zip"

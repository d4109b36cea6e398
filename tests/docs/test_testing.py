"""docs/testing.md: its blocks run as they stand, and it names every method that a test may call."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kclient.embedded import EmbeddedCluster
from tests.docs.blocks import python_blocks

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
BLOCKS = python_blocks(PAGE)


def test_the_block_for_pytest_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(BLOCKS[0])
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


@pytest.mark.parametrize("number", range(1, len(BLOCKS)))
def test_the_other_blocks_run(number: int) -> None:
    exec(compile(BLOCKS[number], "testing.md", "exec"), {})


def test_every_method_is_named() -> None:
    public = {name for name in dir(EmbeddedCluster) if not name.startswith("_")} - {"cluster_loop", "state"}
    named = set(re.findall(r"`([a-z_]+)", PAGE))
    assert public - named == set()

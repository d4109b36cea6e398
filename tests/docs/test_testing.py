"""docs/testing.md: its blocks run as they stand, and it names every method that a test may call."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.simulation import Simulation
from kclient.simulation.faults import KINDS
from tests.docs.blocks import python_blocks

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
BLOCKS = python_blocks(PAGE)
SIMULATED = [block for block in BLOCKS if "kafka_simulation" in block]
OTHERS = [block for block in BLOCKS[1:] if block not in SIMULATED]


def test_the_block_for_pytest_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(BLOCKS[0])
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_a_seed_finds_the_loss_and_says_what_the_page_shows(pytester: pytest.Pytester) -> None:
    (block,) = SIMULATED
    pytester.makepyfile(block)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    shown = re.search(r"^    (AssertionError: .*)\n(?:.*\n)*?    (repeat it with: .*)$", PAGE, re.MULTILINE)
    assert shown is not None
    for line in shown.groups():  # which seed finds it, and where, is not the page's subject
        result.stdout.re_match_lines_random("E +" + re.sub(r"\d+", r"\\d+", line))


@pytest.mark.parametrize("number", range(len(OTHERS)))
def test_the_other_blocks_run(number: int) -> None:
    exec(compile(OTHERS[number], "testing.md", "exec"), {})


def test_every_call_of_a_scenario_and_every_fault_is_named() -> None:
    calls = {name for name in dir(Simulation) if not name.startswith("_")} - {"now", "report"}
    assert [name for name in calls if f"simulation.{name}" not in PAGE] == []
    assert [kind for kind in KINDS if f"`{kind}`" not in PAGE] == []


def test_every_method_is_named() -> None:
    public = {name for name in dir(EmbeddedCluster) if not name.startswith("_")} - {"cluster_loop", "state"}
    named = set(re.findall(r"`([a-z_]+)", PAGE))
    assert public - named == set()

"""docs/assignors.md: its blocks run one after the other, and its table holds every assignor with its protocols."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from kclient.config import load
from kclient.group.assignors import COOPERATIVE, resolve_assignors
from tests.docs.blocks import python_blocks

PAGE = (Path(__file__).parents[2] / "docs" / "assignors.md").read_text()
BUILT_IN = ("range", "roundrobin", "sticky", "cooperative-sticky")


def test_the_blocks_run() -> None:
    names: dict[str, Any] = {"__name__": "assignors"}
    for block in python_blocks(PAGE):
        exec(compile(block, "assignors.md", "exec"), names)
    assert {"Consumer", "ByWeight", "Twice"} <= names.keys()


def test_the_table_names_every_assignor_and_how_it_rebalances() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| `….(\w+)` \| .* \| (.*) \|$", PAGE, re.MULTILINE)
    assert tuple(name for name, _, _ in rows) == BUILT_IN
    for name, java, rebalances in rows:
        strategy = load(
            {
                "bootstrap_servers": "localhost:9092",
                "partition_assignment_strategy": f"org.apache.kafka.clients.consumer.{java}",
            }
        ).partition_assignment_strategy
        assert strategy == (name,)
        (assignor,) = resolve_assignors(strategy)
        assert (COOPERATIVE in assignor.supported_protocols) == rebalances.startswith("cooperative")


def test_the_default_is_the_one_that_the_page_names() -> None:
    default = load({"bootstrap_servers": "localhost:9092"}).partition_assignment_strategy
    assert f'`["{default[0]}", "{default[1]}"]`' in PAGE
    assert len(default) == 2

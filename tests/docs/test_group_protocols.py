"""docs/group-protocols.md: its blocks run, and what it says of keys is what the configuration says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kclient.config import load
from kclient.errors import ConfigError
from tests.docs.blocks import python_blocks

PAGE = (Path(__file__).parents[2] / "docs" / "group-protocols.md").read_text()
HERE = {"bootstrap_servers": "localhost:9092"}


def test_the_blocks_run() -> None:
    blocks = python_blocks(PAGE)
    assert len(blocks) == 2
    for block in blocks:
        names: dict[str, Any] = {"__name__": "group_protocols"}
        exec(compile(block, "group-protocols.md", "exec"), names)
        names["consumer"].close()


def test_the_table_names_every_protocol_and_the_default() -> None:
    rows = re.findall(r"^\| `\"(\w+)\"`(, the default)? \|", PAGE, re.MULTILINE)
    assert [name for name, _ in rows] == ["classic", "consumer", "auto"]
    for name, default in rows:
        assert load({**HERE, "group_protocol": name}).group_protocol == name
        assert (load(HERE).group_protocol == name) is bool(default)


@pytest.mark.parametrize(
    "key", ["session_timeout_ms", "heartbeat_interval_ms", "partition_assignment_strategy"]
)
def test_the_keys_that_it_calls_refused_are(key: str) -> None:
    assert f"`{key}`" in PAGE
    value = "range" if key.startswith("partition") else 10_000
    with pytest.raises(ConfigError, match=key):
        load({**HERE, "group_protocol": "consumer", key: value})

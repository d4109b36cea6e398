"""The Java client's vectors about messages, read from `data/` (whose README says what they hold)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"

Case = dict[str, Any]


def vectors(name: str) -> list[Case]:
    """All cases of one file, in order."""
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="ascii") as lines:
        return [json.loads(line) for line in lines]


def by_version(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """The cases of each message and version, under the id of their test."""
    groups = groupby(cases, key=lambda case: f"{case['message']}-{case['version']}")
    return {name: list(group) for name, group in groups}


def records(case: Case) -> list[bytes | None]:
    """The bytes of the case's records fields, in wire order."""
    return [None if text is None else bytes.fromhex(text) for text in case.get("records_hex", [])]


def tags(described: list[Case]) -> dict[str, dict[int, bytes]]:
    """Unknown tags by the path of their struct."""
    return {one["path"]: {tag["tag"]: bytes.fromhex(tag["hex"]) for tag in one["tags"]} for one in described}

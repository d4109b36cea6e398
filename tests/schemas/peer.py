"""A second witness: the message definitions that kafka-python, a development dependency, carries as JSON."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

from tests.schemas.support import Node


def peer_messages() -> dict[str, Node]:
    """Message by name. The package is only located, not imported: its files are all that is wanted."""
    spec = importlib.util.find_spec("kafka")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("kafka-python is missing: pip install -e '.[dev]'")
    folder = Path(spec.origin).parent / "protocol" / "schemas" / "resources"
    return {path.stem: _parse(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}


def _parse(text: str) -> Node:
    """JSON with comment lines."""
    message: Node = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    return message

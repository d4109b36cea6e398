"""The Java client's vectors that this folder needs, read from `data/`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


def vectors(name: str) -> list[dict[str, Any]]:
    """All cases of one file, in order."""
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="ascii") as lines:
        return [json.loads(line) for line in lines]

"""docs/how-to/tuning.md: its figures are those of docs/performance.md, its defaults those of the configuration."""

from __future__ import annotations

import re
from pathlib import Path

from kclient import Consumer
from kclient.config.model import keys
from tests.docs.test_metrics_and_interceptors import named_in

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "how-to" / "tuning.md").read_text()
MEASURED = (DOCS / "performance.md").read_text()
UNITS = {"MiB": 1 << 20, "s": 1000, "min": 60_000}


def test_the_figures_are_those_of_the_measurements() -> None:
    rows = re.findall(r"^\| `(.*?)`.*? \| ([\d,]+ · [\d.]+) µs \|$", PAGE, re.MULTILINE)
    assert len(rows) == 5
    for name, figures in rows:
        reader = "async for" if name == "async for" else name.removesuffix(" consumer")
        assert f"| kclient {reader} | {figures} |" in MEASURED, name


def test_the_defaults_are_those_of_the_configuration() -> None:
    defaults = {field.name: field.default for field in keys()}
    rows = re.findall(r"^\| `(\w+)` \| (\d+)(?: (\w+))? \|", PAGE, re.MULTILINE)
    assert len(rows) == 7
    for name, number, unit in rows:
        assert defaults[name] == int(number) * UNITS.get(unit, 1), name
    assert f"`max_poll_records` ({defaults['max_poll_records']})" in PAGE
    assert defaults["max_poll_interval_ms"] == 5 * UNITS["min"]


def test_what_is_named_exists() -> None:
    words = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)(?:=.*?)?`", PAGE))
    assert {
        word for word in words if word not in {field.name for field in keys()} and not hasattr(Consumer, word)
    } <= {"max_records"}
    metrics = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", PAGE))
    assert metrics <= named_in((DOCS / "metrics.md").read_text())

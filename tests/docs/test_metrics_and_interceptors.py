"""docs/metrics.md and docs/interceptors.md: their blocks run as they stand, and the table names every metric."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.metrics.calls import COUNTERS
from tests.docs.blocks import python_blocks
from tests.metrics.java_table import table
from tests.metrics.test_java_metrics import NOT_HERE

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("metrics", "interceptors")


def blocks(page: str) -> list[str]:
    return python_blocks((DOCS / f"{page}.md").read_text())


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedCluster(
        brokers=1, topics={"orders": 1}, config={"group.initial.rebalance.delay.ms": 0}
    ) as kafka:
        kafka.produce("orders", ["a", "b", "c"])
        for block in blocks(page):
            names: dict[str, object] = {}
            exec(compile(block.replace("localhost:9092", kafka.bootstrap_servers), page, "exec"), names)
            if "metrics" in names:
                assert names["metrics"].value("records-consumed-total") == 3  # type: ignore[attr-defined]
                assert 'records_lag{client_id="' in str(names["text"])
    if page == "interceptors":
        assert capsys.readouterr().out.startswith("orders-0 3\nstored {")


def named_in(text: str) -> set[str]:
    """The metrics of a text, `fetch-rate/total` written out."""
    named = set()
    for written in re.findall(r"[a-z]+(?:-[a-z/]+)+", text):
        parts = [part.split("/") for part in written.split("-")]
        alternatives = [""]
        for part in parts:
            alternatives = [f"{begun}-{choice}".lstrip("-") for begun in alternatives for choice in part]
        named.update(alternatives)
    return named


def test_the_table_names_every_metric() -> None:
    named = named_in((DOCS / "metrics.md").read_text())
    javas = {name for _, name, _, _ in table() if not any(part in name for part in NOT_HERE)}
    assert javas - named == set()
    assert set(COUNTERS) - named == set()


def test_the_alerts_are_on_metrics_that_exist() -> None:
    _, alerts = (DOCS / "how-to" / "metrics.md").read_text().split("## What to alert on")
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", alerts))
    assert len(named) > 5
    assert named - named_in((DOCS / "metrics.md").read_text()) == set()

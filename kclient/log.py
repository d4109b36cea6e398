"""The loggers of kclient: every log record is printable and bounded, and a lasting fault is logged only now and then.

A handler writes a record as one line, so a line break inside a topic name would let a peer write a log line of its
own. The filter is added to each logger, because Python does not apply the filters of a logger's parents.

    TRACE (5)   each piece of data on its way: partitions added to a Fetch, data fetched, records returned
    DEBUG       data that were dropped and why, requests that failed
    INFO        a change that a user may want to know: a rebalance, a position out of range
    WARNING     what needs attention; a fault that lasts is logged once in ten seconds (`ThrottledLogger`)
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Hashable, Mapping
from typing import Final

import attrs

from kclient.text import LONGEST_TEXT, printable, printable_traceback

TRACE: Final = 5
THROTTLE_SECONDS: Final = 10.0
MAX_REMEMBERED: Final = 1_000

# Attributes of a log record that contain line breaks on purpose, or that the filter cleans separately.
_MULTILINE = frozenset({"exc_text", "stack_info", "msg", "message"})


def get_logger(name: str) -> logging.Logger:
    """Return the logger of this name, with the filter added. Every module of kclient gets its logger here."""
    logger = logging.getLogger(name)
    if _make_printable not in logger.filters:
        logger.addFilter(_make_printable)
    return logger


def _make_printable(record: logging.LogRecord) -> bool:
    """Make message, traceback and `extra` printable. Return True, which keeps the record."""
    message = record.getMessage()
    shown = printable(message, LONGEST_TEXT)
    if shown != message:
        record.msg, record.args = shown, ()
    for key, value in record.__dict__.items():
        if isinstance(value, str) and key not in _MULTILINE:
            record.__dict__[key] = printable(value, LONGEST_TEXT)
    if record.exc_info is not None and record.exc_info[0] is not None:
        _clean_traceback(record)
    return True


def _clean_traceback(record: logging.LogRecord) -> None:
    """Cache a printable text of the traceback if the original is not; otherwise a formatter makes the text."""
    if record.exc_info is None:
        return
    text = "".join(traceback.format_exception(*record.exc_info)).removesuffix("\n")
    shown = printable_traceback(text)
    if shown != text:
        record.exc_text = shown


@attrs.define
class _Fault:
    quiet_until: float
    suppressed: int = 0


class ThrottledLogger:
    """Log a warning for each fault at most once in THROTTLE_SECONDS; the next one counts those left out since."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._faults: dict[Hashable, _Fault] = {}

    def warning(
        self,
        fault: Hashable,
        now: float,
        text: str,
        *args: object,
        exc_info: BaseException | None = None,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        """Log unless this fault was logged a moment ago. `now` is the loop's time, the rest as for a logger."""
        known = self._faults.get(fault)
        if known is not None and now < known.quiet_until:
            known.suppressed += 1
            return
        if known is not None and known.suppressed:
            text, args = f"{text} (%d times more since the last such line)", (*args, known.suppressed)
        if len(self._faults) >= MAX_REMEMBERED:
            self._faults = {key: one for key, one in self._faults.items() if now < one.quiet_until}
        self._faults[fault] = _Fault(now + THROTTLE_SECONDS)
        self._logger.warning(text, *args, exc_info=exc_info, extra=extra)

"""The loggers of kclient: whatever reaches a handler is printable and bounded, also where a peer chose its text.

A handler writes a record as one line, so a line break inside a topic's name would begin a line of the peer's. The
filter stands at each logger, because Python does not ask the filters of a logger's parents.
"""

from __future__ import annotations

import logging
import traceback

from kclient.text import LONGEST_TEXT, printable, printable_traceback

_LINES = frozenset(
    {"exc_text", "stack_info", "msg", "message"}
)  # have lines on purpose, or are handled apart


def get_logger(name: str) -> logging.Logger:
    """The logger of this name. Every module of kclient takes its logger here."""
    logger = logging.getLogger(name)
    if _make_printable not in logger.filters:
        logger.addFilter(_make_printable)
    return logger


def _make_printable(record: logging.LogRecord) -> bool:
    """Make message, traceback and `extra` printable, and keep the record."""
    message = record.getMessage()
    shown = printable(message, LONGEST_TEXT)
    if shown != message:
        record.msg, record.args = shown, ()
    for key, value in record.__dict__.items():
        if isinstance(value, str) and key not in _LINES:
            record.__dict__[key] = printable(value, LONGEST_TEXT)
    if record.exc_info is not None and record.exc_info[0] is not None:
        _clean_traceback(record)
    return True


def _clean_traceback(record: logging.LogRecord) -> None:
    """Set the cached text of a traceback that is not fit as it is; a formatter makes any other one."""
    if record.exc_info is None:
        return
    text = "".join(traceback.format_exception(*record.exc_info)).removesuffix("\n")
    shown = printable_traceback(text)
    if shown != text:
        record.exc_text = shown

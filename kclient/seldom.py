"""A lasting fault in the log: one WARNING for it in ten seconds, with a count of what was kept quiet.

Imports nothing of ours.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from typing import Final

import attrs

QUIET_SECONDS: Final = 10.0
MAX_REMEMBERED: Final = 1_000


@attrs.define
class _Fault:
    quiet_until: float
    kept_quiet: int = 0


class Seldom:
    """Warns of each fault at most once in QUIET_SECONDS; the next warning tells how often it came meanwhile."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._faults: dict[Hashable, _Fault] = {}

    def warn(
        self,
        fault: Hashable,
        now: float,
        text: str,
        *args: object,
        exc_info: BaseException | None = None,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        """`text`, `args`, `exc_info` and `extra` as for a logger; `now` is the loop's time."""
        known = self._faults.get(fault)
        if known is not None and now < known.quiet_until:
            known.kept_quiet += 1
            return
        if known is not None and known.kept_quiet:
            text, args = f"{text} (%d times more since the last such line)", (*args, known.kept_quiet)
        if len(self._faults) >= MAX_REMEMBERED:
            self._faults = {key: one for key, one in self._faults.items() if now < one.quiet_until}
        self._faults[fault] = _Fault(now + QUIET_SECONDS)
        self._logger.warning(text, *args, exc_info=exc_info, extra=extra)

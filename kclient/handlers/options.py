"""HandlerOptions: the arguments of a run of handlers, and what they may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from kclient.errors import ArgumentError
from kclient.handlers.in_flight import ORDERINGS, Ordering
from kclient.records.records import Record

DeadLetters = Callable[[Record[Any, Any], Exception], Any]

LEAST_IN_FLIGHT: Final = 500  # by default
COUNTS: Final = {"concurrency": 1, "retries": 0}  # whole numbers, and the least of each
TIMES: Final = ("retry_backoff_ms", "retry_backoff_max_ms", "commit_interval", "drain_timeout")


@attrs.frozen(kw_only=True)
class HandlerOptions:
    """The arguments of `kclient.handlers.run`. Raise ArgumentError for one that is of no use."""

    concurrency: int
    ordered_by: Ordering | None
    retries: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    dead_letter: DeadLetters | None
    max_in_flight: int | None
    commit_interval: float
    drain_timeout: float

    def __attrs_post_init__(self) -> None:
        if self.ordered_by not in ORDERINGS:
            raise ArgumentError(f'ordered_by is "key", "partition" or None, not {self.ordered_by!r}.')
        for name, least in COUNTS.items():
            _check_count(name, getattr(self, name), least)
        if self.max_in_flight is not None:
            _check_count("max_in_flight", self.max_in_flight, self.concurrency)
        for name in TIMES:
            value = getattr(self, name)
            if not (isinstance(value, int | float) and value >= 0):
                raise ArgumentError(f"{name} is a number of at least 0, not {value!r}.")
        if self.dead_letter is not None and not callable(self.dead_letter):
            raise ArgumentError(
                f"dead_letter is a function of the record and the exception, not {self.dead_letter!r}. A record "
                "has what its deserializers returned, so how to write it is yours to say: give a function that does."
            )

    @property
    def most_in_flight(self) -> int:
        """`max_in_flight`, or its default."""
        if self.max_in_flight is None:
            return max(LEAST_IN_FLIGHT, 2 * self.concurrency)
        return self.max_in_flight


def _check_count(name: str, value: object, least: int) -> None:
    if not (isinstance(value, int) and value >= least):
        raise ArgumentError(f"{name} is a whole number of at least {least}, not {value!r}.")

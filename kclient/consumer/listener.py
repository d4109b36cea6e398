"""The user's part in a rebalance: three methods, run inside the user's own poll, unsubscribe or close.

A listener may commit, seek and pause. Plain and async methods both suit an AsyncConsumer.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from difflib import get_close_matches
from typing import Any, Final, Protocol

from kclient.errors import ArgumentError, KclientError, ListenerError, WakeupError
from kclient.log import get_logger
from kclient.text import format_partitions
from kclient.types import TopicPartition

log = get_logger("kclient.group")

ASSIGNED = "on_partitions_assigned"
REVOKED = "on_partitions_revoked"
LOST = "on_partitions_lost"
METHODS: Final = (ASSIGNED, REVOKED, LOST)
OTHER_CLIENTS_NAMES: Final = {
    "on_assign": ASSIGNED,
    "on_revoke": REVOKED,
    "on_lost": LOST,
}  # confluent-kafka's

CallUser = Callable[..., Awaitable[Any]]
"""Runs a function of the user's in the user's context and gives back its result, awaited where it is a coroutine."""


class RebalanceListener(Protocol):
    """Inherit from it and write the methods you need.

    A listener that commits or seeks is made with its consumer, and given to `subscribe`:

        consumer.subscribe(["orders"], listener=Totals(consumer))
    """

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> Awaitable[None] | None:
        """These partitions are new; their records come after this call. Empty where everything was there before."""
        return None

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> Awaitable[None] | None:
        """These partitions go to another member after this call: commit what is processed.

        All partitions before an eager rebalance, also if there are none; in a cooperative one only what goes.
        """
        return None

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> Awaitable[None] | None:
        """Another member may have these partitions already; commits for them fail. As revoked, unless overridden."""
        return self.on_partitions_revoked(partitions)


def checked_listener(listener: Any) -> Any:
    """Return the listener. Raise ArgumentError if it has none of the three methods, or one under a misspelt name."""
    if listener is None:
        return None
    for written, meant in _misspelt_methods(listener):
        raise ArgumentError(
            f"The method {written} of {type(listener).__name__} would never be called: there is no such callback. "
            f"Did you mean {meant}?"
        )
    if any(callable(getattr(listener, name, None)) for name in METHODS):
        return listener
    raise ArgumentError(
        f"{listener!r} is no listener: it has none of {', '.join(METHODS)}. Inherit from kclient.RebalanceListener."
    )


def _misspelt_methods(listener: Any) -> Iterator[tuple[str, str]]:
    """Methods whose names look like that of a callback which the listener does not define, and that callback."""
    defined = {
        name for base in type(listener).__mro__ if base is not RebalanceListener for name in vars(base)
    }
    missing = {_plain(name): name for name in METHODS if name not in defined}
    for name in sorted(defined - {*METHODS}):
        written = _plain(OTHER_CLIENTS_NAMES.get(name, name))
        near = get_close_matches(written, missing, n=1, cutoff=0.9)
        if near and callable(getattr(listener, name, None)):
            yield name, missing[near[0]]


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def coroutine_methods(listener: Any) -> list[str]:
    """The names of those methods that are coroutine functions."""
    return [name for name in METHODS if inspect.iscoroutinefunction(getattr(listener, name, None))]


async def tell(
    listener: RebalanceListener | None,
    name: str,
    partitions: tuple[TopicPartition, ...],
    call_user: CallUser,
) -> None:
    """Call one method. What it raises becomes a ListenerError; a WakeupError passes."""
    method = getattr(listener, name, None)
    if method is None and name == LOST:
        method = getattr(listener, REVOKED, None)
    if method is None:
        return
    try:
        await call_user(method, partitions)
    except WakeupError:
        raise
    except Exception as exc:
        log.error(
            "the listener's %s raised %s for %s", name, type(exc).__name__, format_partitions(partitions)
        )
        if isinstance(exc, KclientError) and name == ASSIGNED:
            raise
        raise ListenerError(
            f"The rebalance listener's {name} raised {type(exc).__name__} for {format_partitions(partitions)}. "
            "The rebalance itself goes on. See the cause, mend the listener, and poll again.",
            callback=name,
            partitions=partitions,
        ) from exc

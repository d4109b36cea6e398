"""The user's part in a rebalance: three methods, run inside the user's own poll, unsubscribe or close.

A listener may commit, seek and pause. Plain and async methods both suit an AsyncConsumer.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from kclient.errors import ArgumentError, KclientError, ListenerError, WakeupError
from kclient.log import get_logger
from kclient.names import names_of
from kclient.types import TopicPartition

log = get_logger("kclient.group")

ASSIGNED = "on_partitions_assigned"
REVOKED = "on_partitions_revoked"
LOST = "on_partitions_lost"

CallUser = Callable[..., Awaitable[Any]]
"""Runs a function of the user's in the user's context and gives back its result, awaited where it is a coroutine."""


class RebalanceListener(Protocol):
    """Inherit from it and write the methods you need."""

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
    """A listener as given. Raises ArgumentError for an object without any of the three methods."""
    if listener is None or any(callable(getattr(listener, name, None)) for name in (ASSIGNED, REVOKED, LOST)):
        return listener
    raise ArgumentError(
        f"{listener!r} is no listener: it has none of {ASSIGNED}, {REVOKED}, {LOST}. "
        "Inherit from kclient.RebalanceListener."
    )


def coroutine_methods(listener: Any) -> list[str]:
    """The names of those methods that are coroutine functions."""
    return [
        name
        for name in (ASSIGNED, REVOKED, LOST)
        if inspect.iscoroutinefunction(getattr(listener, name, None))
    ]


async def tell(
    listener: RebalanceListener | None,
    name: str,
    partitions: tuple[TopicPartition, ...],
    call_user: CallUser,
) -> None:
    """Call one method. What it raises becomes a ListenerError; a WakeupError passes.

    Spec: S3-32, S3-36, S3-49, S3-50, S3-54.
    """
    method = getattr(listener, name, None)
    if method is None and name == LOST:
        method = getattr(listener, REVOKED, None)
    if method is None:
        return
    try:
        await call_user(method, partitions)
    except WakeupError:
        raise
    except Exception as error:
        log.error("the listener's %s raised %s for %s", name, type(error).__name__, names_of(partitions))
        if isinstance(error, KclientError) and name == ASSIGNED:
            raise
        raise ListenerError(
            f"The rebalance listener's {name} raised {type(error).__name__} for {names_of(partitions)}. "
            "The rebalance itself goes on. See the cause, mend the listener, and poll again.",
            callback=name,
            partitions=partitions,
        ) from error

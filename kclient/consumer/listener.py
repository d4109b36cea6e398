"""Rebalance listeners: three methods that run inside the user's own poll, unsubscribe or close.

A listener may commit, seek and pause. With an AsyncConsumer its methods may be plain or async. `listener_invoker.py`
calls them.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from kclient.types import TopicPartition

ASSIGNED: Final = "on_partitions_assigned"
REVOKED: Final = "on_partitions_revoked"
LOST: Final = "on_partitions_lost"
METHODS: Final = (ASSIGNED, REVOKED, LOST)
CallUser = Callable[..., Awaitable[Any]]
"""Runs a user function in the user's context, awaits its result if needed, and returns it."""


class RebalanceListener(Protocol):
    """Inherit from it and write the methods you need.

    A listener that commits or seeks is made with its consumer, and given to `subscribe`:

        consumer.subscribe(["orders"], listener=Totals(consumer))
    """

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> Awaitable[None] | None:
        """These partitions are new; their records come after this call. Empty if nothing was added."""
        return None

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> Awaitable[None] | None:
        """These partitions are revoked after this call: commit what is processed.

        All partitions in an eager rebalance, also if there are none; only the revoked ones in a cooperative rebalance.
        """
        return None

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> Awaitable[None] | None:
        """Another member may have these partitions already; commits for them fail. As revoked, unless overridden."""
        return self.on_partitions_revoked(partitions)


def coroutine_methods(listener: Any) -> list[str]:
    """Return the names of the methods that are coroutine functions."""
    return [name for name in METHODS if inspect.iscoroutinefunction(getattr(listener, name, None))]

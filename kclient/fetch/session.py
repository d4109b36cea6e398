"""The Fetch requests to one node, one after the other. Each is full and stands for itself: no sessions (KIP-227).

A session that the broker keeps (incremental requests, epochs, forgotten topics) has its place here: it answers the same
questions. What must be sent of what is wanted? Does the answer fit?

Spec: B.10.14 (sessionless row), B.10.6.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from kclient.fetch.request import PartitionFetch
    from kclient.types import TopicPartition

NO_SESSION = 0
SESSIONLESS_EPOCH = -1


@attrs.frozen
class SessionStep:
    """What the next request says about its session."""

    session_id: int
    epoch: int
    to_send: Sequence[PartitionFetch]


class Sessionless:
    """Each request names every wanted partition, each answer has to name the same."""

    def next_step(self, wanted: Sequence[PartitionFetch]) -> SessionStep:
        """What to send so that the broker fetches exactly `wanted`."""
        return SessionStep(NO_SESSION, SESSIONLESS_EPOCH, wanted)

    def accepts(self, wanted: Sequence[PartitionFetch], answered: Collection[TopicPartition | None]) -> bool:
        """Whether the answer speaks of the partitions that were asked for, all and no others. Spec: B.10.6, B.10.14."""
        return len(answered) == len(wanted) and {one.tp for one in wanted} == set(answered)

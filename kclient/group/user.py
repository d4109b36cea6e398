"""What the group flow asks of the user's side: the two moments of a rebalance when the application has a say."""

from __future__ import annotations

from typing import Protocol

from kclient.group.generation import Generation
from kclient.types import TopicPartition


class User(Protocol):
    """Runs its part inside the caller's next poll, commit, unsubscribe or close, and returns when it has run.

    What a listener raises belongs to that caller: neither method raises it into the flow.

    Spec: B.13.6, B.13.7, S3-30…S3-36, S3-42…S3-50.
    """

    async def prepare(self, lost: bool) -> None:
        """Auto-commit, `on_partitions_revoked` (or `on_partitions_lost`), then give all partitions up.

        `lost` is what is known when the work is posted. A membership can end between that and the poll that does the
        work, so the work asks `ClassicMembership.lost` when it begins (S3-53).
        """
        ...

    async def complete(
        self, protocol: str, assignment: tuple[TopicPartition, ...], generation: Generation
    ) -> None:
        """Install the assignment, then `on_partitions_assigned`.

        If `generation` is not `ClassicMembership.generation` any more when the work begins, it does nothing: the
        membership ended meanwhile, and the next prepare follows.
        """
        ...

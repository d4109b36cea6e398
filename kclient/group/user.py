"""What a membership asks of the user's side: the moments of a rebalance when the application has a say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kclient.group.generation import Generation
from kclient.types import TopicPartition


class User(Protocol):
    """Runs its part inside the caller's next polls, and returns when it has run.

    What a listener raises belongs to that caller: no method raises it into the flow. Whatever a listener does, the
    assignment has changed when the method returns, unless the membership ended meanwhile.
    """

    def owned(self) -> tuple[TopicPartition, ...]:
        """The partitions that are assigned now."""
        ...

    def poll_slow(self, since_poll: float) -> None:
        """The last poll was `since_poll` seconds ago, most of max_poll_interval_ms: warn."""
        ...

    async def prepare(self, lost: bool, *, cooperative: bool = False) -> None:
        """Auto-commit, then give partitions up before a join, and tell the listener.

        `on_partitions_revoked` for all of them; if `cooperative`, for those whose topic is not wanted any more; if
        `lost`, `on_partitions_lost` for all of them, without a commit. `lost` is what is known when the work is
        posted. A membership can end between that and the poll that does the work, so the work asks `Membership.lost`
        when it begins.
        """
        ...

    async def complete(
        self,
        protocol: str,
        assignment: tuple[TopicPartition, ...],
        generation: Generation,
        remember: Callable[[], None],
    ) -> bool:
        """Take an assignment over: auto-commit and `on_partitions_revoked` for what is owned and not in it (if there
        is any), `remember()`, install it, `on_partitions_assigned` for what is new in it (also if nothing is).

        Returns whether anything was revoked: then the group must join again, for others wait for it. If `generation`
        is not `Membership.generation` any more when the work begins, it does nothing: the membership ended meanwhile,
        and the next prepare follows.
        """
        ...

    async def reconcile(self, assignment: tuple[TopicPartition, ...], still: Callable[[], bool]) -> bool:
        """As `complete`, for an assignment of the coordinator's (KIP-848), while `still()` says that it counts.

        Returns whether the assignment is in place and no listener raised. Else try again: what is done already is
        not done twice.
        """
        ...

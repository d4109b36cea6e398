"""What a consumer uses of its membership, whichever group protocol it speaks.

    ClassicMembership    `membership.py`: JoinGroup, SyncGroup, Heartbeat; the group's leader shares out
    ConsumerMembership   `consumer_protocol/`: ConsumerGroupHeartbeat; the coordinator shares out (KIP-848)

Everything that the application must do or know waits for its next poll.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import Protocol

from kclient.change_signal import ChangeSignal
from kclient.errors import KclientError
from kclient.group.generation import Generation, Identity


class Membership(Protocol):
    """One consumer's membership. Run `run()` as a task of its own while the consumer is subscribed."""

    # --- what others may look at

    @property
    def state(self) -> enum.Enum:
        """Where this member stands, in the words of its protocol: for who tells people."""
        ...

    @property
    def since(self) -> float:
        """When it came to stand there, in the loop's time; 0 if it has not moved yet."""
        ...

    @property
    def ended(self) -> str:
        """Why the membership before this one ended, "" if there was none."""
        ...

    @property
    def generation(self) -> Generation:
        """The present generation, or member epoch, with our member id; `Generation()` while there is none."""
        ...

    @property
    def changed(self) -> ChangeSignal:
        """Wakes who waits for a change of state or generation, for the wish to rejoin, or for an error to take."""
        ...

    @property
    def lost(self) -> bool:
        """Whether partitions that are given up now are lost rather than revoked."""
        ...

    @property
    def rebalancing(self) -> bool:
        """Whether who leaves now has lost the partitions, for a join is under way."""
        ...

    @property
    def stable(self) -> bool:
        """Whether this is a member that may commit what it has."""
        ...

    # --- what the consumer tells

    def set_subscription(self, topics: Iterable[str], matches: Callable[[str], bool] | None = None) -> None:
        """The topics wanted now. With a pattern, those that match so far, and `matches` says whether another does."""
        ...

    def poll_started(self) -> None:
        """Restart the poll timer: when a poll begins, and in every round of one that waits."""
        ...

    def take_error(self) -> KclientError | None:
        """An error that the next poll raises: each once, but one that ends the membership for good every time."""
        ...

    def request_rejoin(self, reason: str) -> None:
        """Rebalance when the next poll allows it, where members may ask for that."""
        ...

    async def leave(self, reason: str, timeout: float, leave: bool | None = None) -> None:
        """Unsubscribe or close: no member any more. The user has given its partitions up before. Never raises.

        `leave` says whether the coordinator is told that this member does not come back; None is for the protocol to
        decide: yes for a dynamic member, no for a static one.
        """
        ...

    # --- commits

    def commit_identity(self) -> Identity:
        """Under which name to commit. Raises CommitFailedError; BrokerError once fenced."""
        ...

    def fetch_identity(self) -> Identity:
        """Under which name to read committed offsets: `Identity()`, or that of a member with an epoch."""
        ...

    def commit_refused(self, code: int, sent: Identity) -> KclientError:
        """What a refused commit means for the membership, and the error for who committed."""
        ...

    # --- running

    async def run(self) -> None:
        """Join, stay and rejoin; end it by cancelling."""
        ...

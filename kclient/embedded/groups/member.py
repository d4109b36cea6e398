"""One member of a classic group, and the answers that are held back from it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TypeAlias, TypeVar

import attrs

from kclient.embedded.clock import Timer
from kclient.generated.join_group_response import JoinGroupResponse
from kclient.generated.sync_group_response import SyncGroupResponse

Answer = TypeVar("Answer")
Parked: TypeAlias = "asyncio.Future[Answer | None]"  # None: nobody waits for it any more, nothing is sent


@attrs.define(eq=False)
class Member:
    """What is kept of it. `instance_id` is None for a dynamic member; times in ms."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: list[tuple[str, bytes]]  # name and metadata, first choice first
    assignment: bytes = b""
    is_new: bool = False  # has never been in a generation
    joining: Parked[JoinGroupResponse] | None = None
    syncing: Parked[SyncGroupResponse] | None = None
    expiry: Timer | None = None

    def metadata(self, protocol: str | None) -> bytes:
        """What it said for one of its protocols."""
        return dict(self.protocols).get(protocol or "", b"")

    def vote(self, candidates: Collection[str]) -> str:
        """The first of its protocols that every member has."""
        return next(name for name, _ in self.protocols if name in candidates)

    def park_join(self) -> Parked[JoinGroupResponse]:
        """Hold the answer to its JoinGroup back; an older one of it will never be sent."""
        answer_parked(self.joining, None)
        self.joining = asyncio.get_running_loop().create_future()
        return self.joining

    def answer_join(self, answer: JoinGroupResponse) -> bool:
        """Send the answer that is held back; False where there is none."""
        parked, self.joining = self.joining, None
        return answer_parked(parked, answer)

    def park_sync(self) -> Parked[SyncGroupResponse]:
        """The same for SyncGroup."""
        answer_parked(self.syncing, None)
        self.syncing = asyncio.get_running_loop().create_future()
        return self.syncing

    def answer_sync(self, answer: SyncGroupResponse) -> bool:
        """The same for SyncGroup."""
        parked, self.syncing = self.syncing, None
        return answer_parked(parked, answer)

    def stop_expiry(self) -> None:
        """Let its session run on without an end."""
        if self.expiry is not None:
            self.expiry.cancel()
            self.expiry = None


def answer_parked(parked: Parked[Answer] | None, answer: Answer | None) -> bool:
    """Whether somebody waited for it."""
    if parked is None or parked.done():
        return False
    parked.set_result(answer)
    return True

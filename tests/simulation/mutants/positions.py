"""Bugs of positions and commits, M-01 to M-25."""

from __future__ import annotations

from typing import Any

from kclient.fetch.delivery import Delivery
from kclient.group.commits import Commits
from kclient.types import OffsetAndMetadata
from tests.simulation.mutants.table import Patch, mutant


@mutant("M-01", "I-01")
def commit_one_more(patch: Patch) -> None:
    """Commit one more than the position."""

    async def commit(self: Commits, offsets: Any, *, retry: bool) -> None:
        more = {tp: OffsetAndMetadata(one.offset + 1) for tp, one in offsets.items()}
        await before(self, more, retry=retry)

    before = patch.put(Commits, "commit", commit)


@mutant("M-21", "I-06", "I-03")
def deliver_stale(patch: Patch) -> None:
    """Deliver what was buffered before a seek."""
    patch.put(Delivery, "_is_at", lambda self, fetch, offset: True)

"""Bugs of what a consumer logs and reports: secrets, errors, metrics, M-106 to M-109."""

from __future__ import annotations

import logging
from typing import Any

from kclient.consumer.commits import CommitManager
from kclient.consumer.offset_lookup import ConsumerLag
from kclient.consumer.tasks import BackgroundTasks
from kclient.network import sasl
from kclient.security.secret import Secret
from tests.simulation.mutants.table import Patch, mutant


@mutant("M-106", "I-39", seed=164)
def secret_shown(patch: Patch) -> None:
    """Show the password where the configuration is shown."""
    patch.put(Secret, "__repr__", lambda self: repr(self.reveal()))


@mutant("M-107", "I-39", seed=294)
def tokens_logged(patch: Patch) -> None:
    """Log the tokens of an authentication at DEBUG."""

    async def token(self: Any, content: bytes) -> bytes:
        logging.getLogger("kclient.auth").debug("token %s", content.decode("latin-1"))
        return await before(self, content)  # type: ignore[no-any-return]

    before = patch.put(sasl._SaslExchange, "_token", token)


@mutant("M-108", "I-38", seed=122)
def errors_swallowed(patch: Patch) -> None:
    """Let an automatic commit that fails end its task, and look at no task that has ended."""

    async def auto_commit(self: CommitManager, offsets: Any, place: Any) -> None:
        try:
            await self._store(self._committer.commit(offsets, retry=False, before_send=place.wait_to_send))
        finally:
            self._auto_in_flight = False
            place.finish()

    patch.put(CommitManager, "_auto_commit", auto_commit)
    patch.put(BackgroundTasks, "_store_error", lambda self, name, task: None)


@mutant("M-109", "I-40", seed=2)
def lag_from_high_watermark(patch: Patch) -> None:
    """Count the lag from the high watermark, whatever may be read."""

    def current(self: Any, partition: Any) -> Any:
        state = self._positions.state(partition)
        stable, state.last_stable_offset = state.last_stable_offset, state.high_watermark
        try:
            return before(self, partition)
        finally:
            state.last_stable_offset = stable

    before = patch.put(ConsumerLag, "current", current)

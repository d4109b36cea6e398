"""Bugs of the facade for threads, M-114 and M-115. Threads are real, so no seed can show them: scripts do."""

from __future__ import annotations

from typing import Any

from kclient import bridge
from kclient.bridge import LoopThread
from kclient.on_loop import OnLoop
from tests.simulation.mutants import facade_scripts
from tests.simulation.mutants.table import Patch, mutant


@mutant("M-114", "I-20", look=facade_scripts.interrupted_call)
def result_of_another(patch: Patch) -> None:
    """Have all calls of a thread wait at one inbox, and leave there what came of one that was interrupted."""
    inbox: bridge._Inbox = bridge._Inbox()

    def init(self: bridge._Call, function: Any) -> None:
        before(self, function)
        self._inbox = inbox

    before = patch.put(bridge._Call, "__init__", init)
    patch.put(LoopThread, "_end", lambda self, call: self.loop.call_soon_threadsafe(call.cancel))


@mutant("M-115", "I-04", look=facade_scripts.interrupted_poll)
def interrupted_records_lost(patch: Patch) -> None:
    """Forget the records of a poll whose caller was interrupted before it had them."""
    patch.put(OnLoop, "_return_unreceived", lambda self: setattr(self.delivered, "received", True))

"""What brokers do to the sessions in which they remember what a client fetches (KIP-227)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kclient.embedded.apis.fetch import sessions_of
from tests.simulation.faults.kinds import End, amount, broker, kind
from tests.simulation.plan import Fault

if TYPE_CHECKING:
    from tests.simulation.stage import Stage


@kind("F-37", target=broker)
def evict_sessions(stage: Stage, fault: Fault) -> End | None:
    """A broker forgets all sessions, as if others had needed the room."""
    sessions_of(stage.cluster.state.brokers[int(fault.target)]).open.clear()
    return None


@kind("F-37", target=broker)
def miscount_sessions(stage: Stage, fault: Fault) -> End | None:
    """A broker has counted one request more than there was, in each session."""
    sessions = sessions_of(stage.cluster.state.brokers[int(fault.target)])
    for session in sessions.open.values():
        sessions.advance(session, session.used)
    return None


@kind("F-37", amount=amount(0, 1))
def few_sessions(stage: Stage, fault: Fault) -> End | None:
    """Brokers have room for so many sessions; those that there are end."""
    state = stage.cluster.state

    def resize(slots: int) -> None:
        for one in state.brokers.values():
            sessions = sessions_of(one)
            sessions.slots = slots
            sessions.open.clear()

    resize(int(fault.amount))
    return lambda: resize(state.settings.max_incremental_fetch_session_cache_slots)

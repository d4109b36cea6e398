"""What client and broker know of each other's fetch sessions (KIP-227)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kclient.embedded.apis.fetch import sessions_of
from kclient.embedded.fetch_sessions import INITIAL_EPOCH, LAST_EPOCH, NO_SESSION, BrokerFetchSession
from kclient.embedded.request_context import RequestContext
from kclient.protocol.message import Message
from kclient.simulation.process import current_name
from tests.simulation.application import Member
from tests.simulation.watch import Invariant

if TYPE_CHECKING:
    from kclient.fetch.session import FetchSession
    from tests.simulation.stage import Stage

FIRST: Final = 1  # the epoch behind a full request


class Sessions(Invariant):
    """After each answered Fetch the broker's session holds what the client thinks it holds: no partition is missing.

    And a session goes on only after a response without an error: what became of anything else is unknown.
    """

    id = "I-19"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.brokers: dict[int, BrokerFetchSession] = {}  # by session id
        self.next: dict[tuple[str, int], int] = {}  # the epoch that may come next, by client and session id

    def began(self, member: Member) -> None:
        self.next = {key: epoch for key, epoch in self.next.items() if key[0] != member.name}

    def asking(self, request: Any) -> None:
        if request.NAME != "FetchRequest" or request.session_epoch <= INITIAL_EPOCH:
            return
        name = current_name()
        due = self.next.get((name, request.session_id))
        if request.session_epoch != due:
            self.broken(f"{name} goes on at epoch {request.session_epoch} of a session, due is {due}")

    def answered(self, call: RequestContext, response: Message | None) -> None:
        if call.api == "Fetch" and response is not None:
            session_id: int = response.session_id  # type: ignore[attr-defined]
            if session_id != NO_SESSION and (found := sessions_of(call.broker).open.get(session_id)):
                self.brokers[session_id] = found

    def exchanged(self, request: Any, response: Any) -> None:
        if request.NAME != "FetchRequest" or request.session_epoch < INITIAL_EPOCH:
            return
        name = current_name()
        self.next.pop((name, request.session_id), None)
        if response.error_code or response.session_id == NO_SESSION:
            return
        epoch = request.session_epoch
        self.next[name, response.session_id] = FIRST if epoch in (INITIAL_EPOCH, LAST_EPOCH) else epoch + 1
        if epoch != INITIAL_EPOCH:
            self._compare(name, response.session_id)

    def _compare(self, name: str, session_id: int) -> None:
        session, broker = self._of_client(name, session_id), self.brokers.get(session_id)
        if session is None or broker is None:
            return
        ours = {
            ((one.topic_id if session.by_id else tp.topic), tp.partition): one.offset
            for tp, one in session.partitions.items()
        }
        theirs = {key: one.asked.fetch_offset for key, one in broker.partitions.items()}
        if ours != theirs:
            wrong = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
            key = wrong[0]
            self.broken(
                f"{name} has {key} at {ours.get(key)} in its session, the broker at {theirs.get(key)}"
            )

    def _of_client(self, name: str, session_id: int) -> FetchSession | None:
        consumer = self.stage.members[name].consumer
        nodes = consumer._core.fetcher._nodes if consumer is not None else {}
        sessions = (node.session for node in nodes.values())
        return next((one for one in sessions if one.session_id == session_id), None)


ALL = [Sessions]

"""Bugs of fetch sessions, M-28 to M-30."""

from __future__ import annotations

from typing import Any

import attrs

from kclient.fetch.session import INITIAL_EPOCH, FetchRequestData, FetchSession
from kclient.protocol.errors import FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH
from kclient.types import TopicPartition
from tests.simulation.mutants import plans
from tests.simulation.mutants.table import Patch, mutant

OF_SESSIONS = (FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH)


@mutant("M-28", "I-19", "I-22", seed=2)
def not_added_again(patch: Patch) -> None:
    """Forget to add a partition to the session again that was left out for a while."""

    def incremental_request(self: FetchSession, *args: Any) -> FetchRequestData | None:
        known, gone = set(self.partitions), gone_of.setdefault(id(self), set())
        step: FetchRequestData | None = before(self, *args)
        if step is None:
            return None
        to_send = [one for one in step.to_send if one.tp in known or one.tp not in gone]
        gone.update(one.tp for one in step.to_forget)
        return attrs.evolve(step, to_send=to_send)

    gone_of: dict[int, set[TopicPartition]] = {}
    before = patch.put(FetchSession, "_incremental_request", incremental_request)


@mutant("M-29", "I-19", "I-22")
def epoch_goes_on(patch: Patch) -> None:
    """Count the epoch of a session on although the broker refused the request."""

    def handle_response(self: FetchSession, response: Any, rows: Any) -> bool:
        session_id = self.session_id
        fits: bool = before(self, response, rows)
        if response.error_code and self._sent_epoch != INITIAL_EPOCH:
            self.session_id, self.epoch = session_id, self._sent_epoch + 1
        return fits

    before = patch.put(FetchSession, "handle_response", handle_response)


@mutant("M-30", "I-22", "I-02", look=plans.looking_at(plans.LOST_SESSIONS))
def error_empties_session(patch: Patch) -> None:
    """Ask for nothing of a session any more that the broker has lost."""

    def handle_response(self: FetchSession, response: Any, rows: Any) -> bool:
        if response.error_code in OF_SESSIONS:
            lost_of.setdefault(id(self), set()).update(self.partitions)
        fits: bool = before_accepts(self, response, rows)
        return fits

    def next_request(self: FetchSession, wanted: Any, *args: Any, **options: Any) -> FetchRequestData:
        lost = lost_of.get(id(self), ())
        left = {tp: one for tp, one in wanted.items() if tp not in lost}
        step: FetchRequestData = before_step(self, left, *args, **options)
        return step

    lost_of: dict[int, set[TopicPartition]] = {}
    before_accepts = patch.put(FetchSession, "handle_response", handle_response)
    before_step = patch.put(FetchSession, "next_request", next_request)

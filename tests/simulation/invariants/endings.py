"""What close() and unsubscribe() owe an application that is impatient, or has died."""

from __future__ import annotations

from kclient.errors import WakeupError
from tests.simulation.application import Member
from tests.simulation.watch import Invariant, Offsets


class Undisturbed(Invariant):
    """No wakeup reaches them or the listener's commits in them; close() gives every asynchronous commit its outcome."""

    id = "I-24"

    def commit_ended(self, member: Member, offsets: Offsets | None, error: BaseException | None) -> None:
        calls = [call for call in member.inside if call in ("close", "unsubscribe")]
        if isinstance(error, WakeupError) and calls:
            self.broken(f"{member}: a wakeup ended the listener's commit of {offsets} in {calls[0]}")

    def close_ended(self, member: Member, seconds: float, error: BaseException | None) -> None:
        if isinstance(error, WakeupError):
            self.broken(f"{member}: a wakeup ended close()")
        if member.unanswered:
            self.broken(f"{member} is closed, and {member.unanswered} asynchronous commits have no outcome")


ALL = [Undisturbed]

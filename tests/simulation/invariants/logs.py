"""What should never be logged: exceptions without an owner, floods of warnings, secrets."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Final

from kclient.errors import InternalError
from tests.simulation.application import Member
from tests.simulation.watch import Invariant

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

EXPECTED_ERRORS: Final = (
    "Upset",  # what a listener raised
    "An error waits for the next poll already",  # S0-49, S0-63: it will be met again
)
WARNINGS_A_SECOND: Final = 12  # the shortest pause of a retry is 0.08 s


class FewWarnings(Invariant):
    """At most one WARNING for each broker or partition, whichever are more, in each step of a backoff."""

    id = "I-37"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.second = 0
        self.counts: Counter[tuple[str, str]] = Counter()

    def logged(self, member: Member, record: logging.LogRecord) -> None:
        if record.levelno != logging.WARNING:
            return
        second = int(self.stage.now)
        if second != self.second:
            self.second = second
            self.counts.clear()
        key = member.name, str(record.msg)
        self.counts[key] += 1
        most = WARNINGS_A_SECOND * max(self.stage.scenario.brokers, len(self.stage.partitions()))
        if self.counts[key] == most + 1:
            self.broken(f"{member} warned more than {most} times in a second: {record.getMessage()}")


class NothingUnhandled(Invariant):
    """No exception is left to the loop, no broker fails, nothing says of itself that it is a bug."""

    id = "I-38"

    def raised(self, member: Member, call: str, error: BaseException) -> None:
        if isinstance(error, InternalError):
            self.broken(f"{member}: {call} raised {error}")

    def logged(self, member: Member, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.levelno >= logging.ERROR and not any(one in text for one in EXPECTED_ERRORS):
            self.broken(f"{member} logged: {text}")

    def finished(self) -> None:
        for bug in self.stage.cluster.state.bugs:
            self.broken(f"a broker failed with {bug!r}")


class Canary(Invariant):
    """The password and the tokens of this run are nowhere in what is logged, raised, counted or shown."""

    id = "I-39"

    def logged(self, member: Member, record: logging.LogRecord) -> None:
        self._look(member, "logged it", record.getMessage())

    def raised(self, member: Member, call: str, error: BaseException) -> None:
        self._look(member, f"{call} raised it", f"{error} {error!r} {vars(error)}")

    def close_began(self, member: Member, timeout: float) -> None:
        consumer = member.consumer
        if consumer is not None and not consumer.closed:
            session = consumer._core
            shown = f"{consumer!r} {session!r} {session.config!r} {session.config} {consumer.metrics()}"
            self._look(member, "shows it", shown)

    def _look(self, member: Member, where: str, text: str) -> None:
        for secret in self.stage.secrets:
            if secret in text:
                self.broken(f"{member} {where}: {text.replace(secret, '(the secret)')[:200]}")


ALL = [FewWarnings, NothingUnhandled, Canary]

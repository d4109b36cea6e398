"""Members of one group as processes, and the records and callbacks that they report."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from localkafka import KafkaCluster
from tests.kafka import java_member

ROOT = Path(__file__).parents[2]
SECONDS = 40
QUICK = {"session.timeout.ms": 3000, "heartbeat.interval.ms": 300, "auto.offset.reset": "earliest"}


class Member:
    """A process that runs `tests.kafka.member`, or Java's own with the kind `java`; `events` grows while it lives."""

    def __init__(self, name: str, kind: str, settings: dict[str, Any], topic: str, folder: Path) -> None:
        self.name = name
        self.events: list[dict[str, Any]] = []
        command = [sys.executable, "-m", "tests.kafka.member", kind, json.dumps(settings), topic]
        self._meaning: Callable[[str], dict[str, Any] | None] = json.loads
        self._good = 0
        if kind == "java":
            command = java_member.command(settings, topic, folder)
            self._meaning, self._good = java_member.event, java_member.ENDED_BY_SIGTERM
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._errors: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self._understand), daemon=True),
            threading.Thread(target=self._read, args=(self.process.stderr, self._errors.append), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream: Any, take: Callable[[str], None]) -> None:
        with stream:
            for line in stream:
                take(line)

    def _understand(self, line: str) -> None:
        if event := self._meaning(line):
            self.events.append(event)

    @property
    def errors(self) -> str:
        """What it wrote to standard error."""
        return "".join(self._errors)

    @property
    def numbers(self) -> list[int]:
        """Every record it has seen, in its order."""
        return [n for event in list(self.events) if event["event"] == "records" for n in event["numbers"]]

    @property
    def owned(self) -> set[int]:
        """The partitions it has now."""
        owned: set[int] = set()
        for event in list(self.events):
            if event["event"] == "assigned":
                owned |= set(event["partitions"])
            elif event["event"] in ("revoked", "lost"):
                owned -= set(event["partitions"])
        return owned

    def has_reported(self, event: str) -> bool:
        """Whether it has reported such an event."""
        return any(line["event"] == event for line in list(self.events))

    def close(self) -> None:
        """SIGTERM, and wait for the clean end."""
        self.process.terminate()
        self._end()
        code = self.process.returncode
        assert code == self._good, f"{self.name} ended with {code}: {self.errors}"
        assert self.has_reported("closed")

    def kill(self) -> None:
        """SIGKILL, and read what it had written."""
        self.process.kill()
        self._end()

    def _end(self) -> None:
        self.process.wait(SECONDS)
        for reader in self._readers:
            reader.join(SECONDS)


class Team:
    """The members of one group on one topic; all that still run are ended with it."""

    def __init__(self, kafka: KafkaCluster, topic: str, group: str) -> None:
        self._base = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, **QUICK}
        self._topic = topic
        self._folder = tempfile.TemporaryDirectory(prefix="team-")
        self.members: list[Member] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self.members:
            if member.process.poll() is None:
                member.kill()
            if error is not None:
                reported = [line for line in member.events if line["event"] != "records"]
                error.add_note(f"{member.name} told {reported}, wrote {member.errors or 'nothing'}")
        self._folder.cleanup()

    def start(self, name: str, kind: str, **settings: Any) -> Member:
        """Start a member whose client id is its name; `max_poll_records=5` stands for `max.poll.records`."""
        dotted = {key.replace("_", "."): value for key, value in settings.items()}
        all_of_them = {**self._base, "client.id": name, **dotted}
        member = Member(name, kind, all_of_them, self._topic, Path(self._folder.name))
        self.members.append(member)
        return member

    def seen(self) -> Counter[int]:
        """How often each record was seen, by all members together."""
        return Counter(number for member in self.members for number in member.numbers)

    def wait_until_seen(self, numbers: Iterable[int]) -> None:
        """Wait until each of these records was seen by a member."""
        wanted = set(numbers)
        self.wait(
            lambda: wanted <= set(self.seen()), lambda: f"not seen: {sorted(wanted - set(self.seen()))[:20]}"
        )

    def wait_until_some_seen(self, member: Member, numbers: Iterable[int]) -> None:
        """Wait until one member is amid these records."""
        wanted = set(numbers)
        self.wait(
            lambda: not wanted.isdisjoint(member.numbers), lambda: f"{member.name} has seen none of these"
        )

    def wait_until_shared(self, members: Iterable[Member], partitions: int) -> None:
        """Wait until exactly these members share out all partitions, and each has some."""
        chosen = list(members)

        def shared() -> bool:
            parts = [member.owned for member in chosen]
            return all(parts) and sorted(p for part in parts for p in part) == list(range(partitions))

        self.wait(shared, lambda: f"shares are {[(m.name, sorted(m.owned)) for m in chosen]}")

    def wait(self, reached: Callable[[], bool], state: Callable[[], str]) -> None:
        """Wait until `reached` is true; fail if a member exits unexpectedly."""
        deadline = time.monotonic() + SECONDS
        while not reached():
            for member in self.members:
                code = member.process.poll()
                assert code in (None, 0, -9, java_member.ENDED_BY_SIGTERM), (
                    f"{member.name} ended with {code}: {member.errors}"
                )
            assert time.monotonic() < deadline, state()
            time.sleep(0.02)

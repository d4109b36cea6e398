"""What the stand-alone cluster tells, one line an event, and the commands that it takes, one a line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Mapping
from typing import Final, TextIO

from kclient.embedded.cluster import EmbeddedCluster
from kclient.embedded.control.logs import find_topic
from kclient.embedded.observer import Observer
from kclient.errors import KclientError
from kclient.text import format_count

COMMANDS: Final = (
    "kill N, restart N, pause N, resume N, shutdown N, topic NAME [PARTITIONS], or leaders TOPIC"
)
READ_BYTES: Final = 65_536


class Teller(Observer):
    """Tells of brokers and topics, with the seconds since it began."""

    def __init__(self, cluster: EmbeddedCluster, stream: TextIO | None = None) -> None:
        self._cluster = cluster
        self._stream = stream or sys.stderr
        self._began = cluster.clock.now()

    def tell(self, text: str) -> None:
        """One line. Where nobody listens any more the cluster serves on."""
        with contextlib.suppress(BrokenPipeError):
            self._stream.write(f"{self._cluster.clock.now() - self._began:8.3f} s  {text}\n")
            self._stream.flush()

    def broker_changed(self, node: int, change: str) -> None:
        leading = sum(partition.leader == node for partition in self._cluster.state.partitions())
        self.tell(f"broker {node} is {change}; it leads {format_count(leading, 'partition')}")

    def topic_created(self, name: str, partitions: int) -> None:
        self.tell(f"topic {name} is made, {format_count(partitions, 'partition')}")

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        self.tell(f"topic {name} is deleted")


class Console:
    """Reads commands from a pipe or a terminal, without ever waiting for one."""

    def __init__(self, cluster: EmbeddedCluster, teller: Teller, descriptor: int) -> None:
        self._cluster = cluster
        self._teller = teller
        self._descriptor = descriptor
        self._unread = b""
        self._commands: Mapping[str, Callable[..., object]] = {
            "kill": lambda node: cluster.kill(int(node)),
            "restart": lambda node: cluster.restart(int(node)),
            "pause": lambda node: cluster.pause(int(node)),
            "resume": lambda node: cluster.resume(int(node)),
            "shutdown": lambda node: cluster.shutdown(int(node)),
            "topic": lambda name, partitions="1": cluster.create_topic(name, int(partitions)),
            "leaders": self._leaders,
        }

    def open(self) -> None:
        """Listen from now on; a file or a closed input has no commands."""
        try:
            asyncio.get_running_loop().add_reader(self._descriptor, self._on_input)
        except OSError:
            self._teller.tell("standard input takes no commands")

    def close(self) -> None:
        """Listen no more."""
        asyncio.get_running_loop().remove_reader(self._descriptor)

    def _on_input(self) -> None:
        if os.isatty(self._descriptor) and os.tcgetpgrp(self._descriptor) != os.getpgrp():
            return self.close()  # in the background: what is typed is meant for the shell
        data = os.read(self._descriptor, READ_BYTES)
        if not data:
            return self.close()
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            if words := line.decode(errors="replace").split():
                self._do(*words)
        return None

    def _do(self, name: str, *words: str) -> None:
        try:
            done = self._commands[name](*words)
        except KclientError as exc:
            self._teller.tell(str(exc))
        except (KeyError, TypeError, ValueError):
            self._teller.tell(f"{' '.join((name, *words))[:80]!r} is no command; commands are {COMMANDS}")
        else:
            if isinstance(done, asyncio.Task):
                done.add_done_callback(self._tell_failure)

    def _tell_failure(self, task: asyncio.Task[object]) -> None:
        """What takes time, as a restart does, may fail when the command is long done."""
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._teller.tell(str(problem))

    def _leaders(self, topic: str) -> None:
        count = len(find_topic(self._cluster.state, topic).partitions)
        leaders = ", ".join(
            f"{number} on {self._cluster.leader_of(topic, number)}" for number in range(count)
        )
        self._teller.tell(f"topic {topic}: {leaders}")

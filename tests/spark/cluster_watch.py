"""Observations of a running cluster: the brokers each process reads from, and the secrets that it shows or holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from benchmarks.bench_spark_process import tree
from kclient.embedded.observer import Observer
from kclient.embedded.received_request import ReceivedRequest


class Fetches(Observer):
    """Who got records from which broker, over which connection."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, int, int]] = set()

    def answered(self, call: ReceivedRequest, answer: Any) -> None:
        if call.api == "Fetch" and any(
            partition.records for topic in answer.responses for partition in topic.partitions
        ):
            self.seen.add((call.principal, call.node_id, call.connection_number))


@attrs.define
class Processes:
    """What anybody on the machine can see of the cluster's processes, and what their own users can."""

    command_lines: set[str] = attrs.field(factory=set)
    environments: dict[str, set[str]] = attrs.field(factory=dict)

    def look(self, roots: dict[str, int]) -> None:
        """All that run below these, by the name of the root."""
        for name, root in roots.items():
            for process in tree(root) if Path(f"/proc/{root}").exists() else []:
                self.command_lines.add(_read(process.pid, "cmdline"))
                self.environments.setdefault(name, set()).add(_read(process.pid, "environ"))

    def holding(self, secret: str) -> set[str]:
        """The roots below which an environment holds it."""
        return {name for name, texts in self.environments.items() if any(secret in text for text in texts)}


def _read(pid: int, what: str) -> str:
    try:
        return Path(f"/proc/{pid}/{what}").read_text(errors="replace").replace("\0", " ")
    except OSError:  # it has ended
        return ""


def errors_of(logs: Mapping[str, str]) -> str:
    """Of each process the last lines, without Spark's reports of its doings and the insides of its JVM."""
    parts = []
    for name, log in logs.items():
        lines = [line for line in log.splitlines() if " INFO " not in line and not line.startswith("\tat ")]
        parts += [f"--- {name}", *lines[-60:]]
    return "\n".join(parts)

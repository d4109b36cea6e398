"""The Java consumer as a member of a group: Kafka's own VerifiableConsumer, which reports its events as JSON lines.

It commits after each poll. Its lines are put into the words of `tests.kafka.member`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localkafka import settings as properties
from localkafka.jars import QUICK_START, classpath, java
from localkafka.releases import NEWEST

PROGRAM = "org.apache.kafka.tools.VerifiableConsumer"
ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
ENDED_BY_SIGTERM = 143


def command(settings: Mapping[str, Any], topic: str, folder: Path) -> list[str]:
    """The command line of a member with these settings, in Kafka's dotted names but for assignors.

    The setting `jvm.options` is for Java itself.
    """
    rest = {key: str(value) for key, value in settings.items()}
    options_of_java = rest.pop("jvm.options", "").split()
    protocol = rest.pop("group.protocol", "classic")
    options = {
        "--bootstrap-server": rest.pop("bootstrap.servers"),
        "--group-id": rest.pop("group.id"),
        "--topic": topic,
        "--reset-policy": rest.pop("auto.offset.reset"),
        "--group-protocol": protocol.upper(),
    }
    strategies = rest.pop("partition.assignment.strategy", "range")
    if protocol == "classic":
        options["--assignment-strategy"] = ",".join(ASSIGNORS[name] for name in strategies.split(","))
        options["--session-timeout"] = rest.pop("session.timeout.ms")
    if "group.instance.id" in rest:
        options["--group-instance-id"] = rest.pop("group.instance.id")
    path = properties.write(rest, folder / f"{rest['client.id']}.properties")
    words = [word for pair in options.items() for word in pair]
    jvm = [java() or "java", *QUICK_START, "-Xmx128m", *options_of_java, "-cp", classpath(NEWEST)]
    return [*jvm, PROGRAM, *words, "--command-config", str(path), "--verbose"]


def event(line: str) -> dict[str, Any] | None:
    """The event of one line, None for an event that the members of the other clients do not report."""
    if not line.startswith("{"):
        return None
    parsed = json.loads(line)
    match parsed["name"]:
        case "partitions_assigned" | "partitions_revoked" | "partitions_lost" as name:
            parts = [one["partition"] for one in parsed["partitions"]]
            return {"event": name.removeprefix("partitions_"), "partitions": parts}
        case "record_data":
            return {"event": "records", "numbers": [int(parsed["value"])]}
        case "shutdown_complete":
            return {"event": "closed"}
    return None

"""The contents of the configuration files: of a broker, its ZooKeeper and its logging."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

HOST = "127.0.0.1"
OFFSETS_PARTITIONS = 5
ZOOKEEPER_CONNECTION_MS = (
    60_000  # of the first connection; by default that of the session, too short on a busy machine
)

# How soon a dead broker's partitions move, and how soon a test may expect its group to be ready.
QUICK = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "3",
}
QUICK_KRAFT = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.election.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1000",
}

ALONE_SESSION_MS = 9000
"""Of a broker without others: a short pause must not fence it. A killed one waits so long for its place."""


def zookeeper_session_ms(nodes: int) -> int:
    """Return how long ZooKeeper keeps the registration of a broker that is gone."""
    return ALONE_SESSION_MS if nodes == 1 else 3000


@attrs.frozen
class Ports:
    """The ports of one node: where clients connect, where the other controllers do (KRaft), more listeners by name."""

    clients: int
    controller: int
    listeners: Mapping[str, int] = attrs.field(factory=dict)


def broker(
    node: int, cluster: Mapping[int, Ports], data: Path, zookeeper: int | None, listeners: Mapping[str, str]
) -> dict[str, str]:
    """Return the properties of one node: KRaft, or with a ZooKeeper's port. `listeners`: name → security protocol."""
    ports = {"PLAINTEXT": cluster[node].clients, **cluster[node].listeners}
    address = ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())
    protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **listeners}
    replication = str(min(3, len(cluster)))
    properties = {
        "listeners": address,
        "advertised.listeners": address,
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(data),
        "offsets.topic.replication.factor": replication,
        "transaction.state.log.replication.factor": replication,
        **QUICK,
    }
    if listeners:
        properties["listener.security.protocol.map"] = ",".join(
            f"{n}:{kind}" for n, kind in protocols.items()
        )
    if zookeeper is not None:
        return properties | {
            "broker.id": str(node),
            "zookeeper.connect": f"{HOST}:{zookeeper}",
            "zookeeper.session.timeout.ms": str(zookeeper_session_ms(len(cluster))),
            "zookeeper.connection.timeout.ms": str(ZOOKEEPER_CONNECTION_MS),
        }
    voters = ",".join(f"{n}@{HOST}:{ports.controller}" for n, ports in cluster.items())
    return (
        properties
        | QUICK_KRAFT
        | ({"broker.session.timeout.ms": str(ALONE_SESSION_MS)} if len(cluster) == 1 else {})
        | {
            "process.roles": "broker,controller",
            "node.id": str(node),
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{address},CONTROLLER://{HOST}:{cluster[node].controller}",
        }
    )


def zookeeper(port: int, data: Path) -> dict[str, str]:
    """Return the properties of a single ZooKeeper."""
    return {
        "dataDir": str(data),
        "clientPort": str(port),
        "clientPortAddress": HOST,
        "tickTime": "500",
        "maxClientCnxns": "0",
        "admin.enableServer": "false",
    }


LOG4J_2 = {
    "status": "error",
    "appender.out.type": "Console",
    "appender.out.name": "out",
    "appender.out.layout.type": "PatternLayout",
    "appender.out.layout.pattern": "%d{HH:mm:ss.SSS} %p %m (%c)%n",
    "rootLogger.level": "info",
    "rootLogger.appenderRef.out.ref": "out",
}
LOG4J_1 = {
    "log4j.rootLogger": "INFO, out",
    "log4j.appender.out": "org.apache.log4j.ConsoleAppender",
    "log4j.appender.out.layout": "org.apache.log4j.PatternLayout",
    "log4j.appender.out.layout.ConversionPattern": "%d{HH:mm:ss.SSS} %p %m (%c)%n",
}


def write(properties: Mapping[str, str], path: Path) -> Path:
    """Write a Java properties file and return its path."""
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()), encoding="utf-8")
    return path

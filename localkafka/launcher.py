"""From a release to running programs: ports, configuration files, formatted folders, command lines."""

from __future__ import annotations

import base64
import os
import random
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from localkafka import settings
from localkafka.errors import LocalKafkaError
from localkafka.jars import classpath, java
from localkafka.processes import Child, Processes
from localkafka.releases import Release
from localkafka.settings import HOST, Ports

FORMAT_SECONDS = 60
ZOOKEEPER = ("-Dzookeeper.jmx.log4j.disable=true", "org.apache.zookeeper.server.quorum.QuorumPeerMain")


class Launcher:
    """Starts the programs of one cluster and knows its files; it does not wait for the programs."""

    def __init__(
        self,
        release: Release,
        folder: Path,
        processes: Processes,
        nodes: Sequence[int],
        overrides: Mapping[str, str],
        jvm_options: Sequence[str],
        listeners: Mapping[str, str],
        format_options: Sequence[str],
    ) -> None:
        zookeeper, *ports = free_ports(1 + (2 + len(listeners)) * len(nodes))
        self.ports = {
            node: Ports(ports.pop(), ports.pop(), {name: ports.pop() for name in listeners}) for node in nodes
        }
        self._listeners = listeners
        self._format_options = format_options
        self._zookeeper = None if release.kraft else zookeeper
        self._folder = folder
        self._processes = processes
        self._overrides = overrides
        log4j_1 = settings.write(settings.LOG4J_1, folder / "log4j.properties")
        log4j_2 = settings.write(settings.LOG4J_2, folder / "log4j2.properties")
        logging = (f"-Dlog4j2.configurationFile={log4j_2}", f"-Dlog4j.configuration=file:{log4j_1}")
        self._java = (java() or "java", *jvm_options, *logging, "-cp", classpath(release.version))

    def prepare(self) -> None:
        """Write every node's configuration, then format the folders (KRaft) or start ZooKeeper."""
        for node in self.ports:
            data = self.data(node)
            data.mkdir()
            properties = settings.broker(node, self.ports, data, self._zookeeper, self._listeners)
            settings.write({**properties, **self._overrides}, self._properties(node))
        if self._zookeeper is None:
            self._format()
        else:
            properties = settings.zookeeper(self._zookeeper, self._folder / "zookeeper")
            path = settings.write(properties, self._folder / "zookeeper.properties")
            self._processes.start("zookeeper", [*self._java, *ZOOKEEPER, str(path)])

    def start_broker(self, node: int) -> Child:
        """Start one node on its ports and its existing data."""
        command = [*self._java, "kafka.Kafka", str(self._properties(node))]
        return self._processes.start(f"broker-{node}", command)

    def _format(self) -> None:
        """Let StorageTool format the first node; the others differ from it in node id and directory id only."""
        first, *others = self.ports
        arguments = ("format", "-t", _uuid(), "-c", str(self._properties(first)), *self._format_options)
        command = [*self._java, "kafka.tools.StorageTool", *arguments]
        run = subprocess.run(command, capture_output=True, text=True, timeout=FORMAT_SECONDS, check=False)
        if run.returncode != 0:
            raise LocalKafkaError(f"StorageTool ended with {run.returncode}:\n{run.stdout}{run.stderr}")
        lines = (self.data(first) / "meta.properties").read_text(encoding="utf-8").splitlines()
        meta = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
        for node in others:
            shutil.copytree(self.data(first), self.data(node), dirs_exist_ok=True)
            own = meta | {"node.id": str(node), "directory.id": _uuid()}
            settings.write(own, self.data(node) / "meta.properties")

    def data(self, node: int) -> Path:
        """Return the log directory of a node."""
        return self._folder / f"data-{node}"

    def _properties(self, node: int) -> Path:
        return self._folder / f"server-{node}.properties"


def free_ports(count: int) -> list[int]:
    """Return free ports below the range of outgoing connections."""
    free: list[int] = []
    for port in random.sample(range(20000, 32000), 50 * count):
        with socket.socket() as attempt:
            if attempt.connect_ex((HOST, port)) != 0:
                free.append(port)
        if len(free) == count:
            return free
    raise LocalKafkaError(f"found only {len(free)} of {count} free ports")


def _uuid() -> str:
    """Return a random id in Kafka's format: 16 bytes in URL-safe base64, not starting with a dash."""
    return "A" + base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")[1:]

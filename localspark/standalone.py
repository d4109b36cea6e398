"""A Spark standalone cluster on loopback: a master and workers, each a process of its own, and `spark-submit` to it.

Everything runs from a pyspark that pip installed. What is given in `worker_environment` is in the environment of the
workers, hence of their executors and these executors' Python, and nowhere else.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from localkafka.errors import LocalKafkaError
from localkafka.processes import Child, Processes
from localspark import JAVA_OPTIONS

HOST = "127.0.0.1"
READY_SECONDS = 120
SMALL = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS}


class StandaloneCluster:
    """`workers` of one core each, with the pyspark of `python`. A context manager."""

    def __init__(
        self, python: Path, workers: int = 2, worker_environment: Mapping[str, str] | None = None
    ) -> None:
        self._python = python
        self._workers = workers
        self._worker_environment = dict(worker_environment or {})
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.folder = Path(tempfile.mkdtemp(prefix="localspark-"))
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self._processes = stack.enter_context(Processes(self.folder))
            self._home = self._find_spark_home()
            self._ports = [_free_port(), _free_port()]
            self._children = [self._start_master()]
            self._wait(0)
            self._children += [self._start_worker(number) for number in range(self._workers)]
            self._wait(self._workers)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def master(self) -> str:
        """For `--master`."""
        return f"spark://{HOST}:{self._ports[0]}"

    @property
    def pids(self) -> list[int]:
        """Of master and workers; the executors are below the workers."""
        return [child.process.pid for child in self._children]

    def page(self, path: str = "/") -> str:
        """Return a page of the master's web interface as text."""
        with urllib.request.urlopen(f"http://{HOST}:{self._ports[1]}{path}", timeout=10) as answer:
            return str(answer.read().decode("utf-8", "replace"))

    def state(self) -> Any:
        """Return the master's state, with its workers and applications."""
        return json.loads(self.page("/json/"))

    def submit(
        self, script: Path, arguments: Sequence[str], options: Sequence[str], environment: Mapping[str, str]
    ) -> subprocess.Popen[str]:
        """`spark-submit` a script whose driver runs here, with `environment` over nothing but the path."""
        log = (self.folder / "driver.log").open("w")
        with log:
            return subprocess.Popen(
                [
                    str(self._home / "bin" / "spark-submit"),
                    "--master",
                    self.master,
                    *options,
                    str(script),
                    *arguments,
                ],
                env={**_bare_environment(), "SPARK_HOME": str(self._home), **environment},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )

    def logs(self) -> dict[str, str]:
        """Return the output of every process: driver, master, workers, and the executors' folders."""
        files = [
            path
            for path in self.folder.rglob("*")
            if path.suffix == ".log" or path.name in ("stderr", "stdout")
        ]
        return {str(path.relative_to(self.folder)): path.read_text(errors="replace") for path in files}

    # --- how it starts

    def _find_spark_home(self) -> Path:
        code = "import os, pyspark; print(os.path.dirname(pyspark.__file__))"
        found = subprocess.run(
            [self._python, "-c", code], capture_output=True, text=True, check=True, timeout=60
        )
        return Path(found.stdout.strip())

    def _start_master(self) -> Child:
        port, page = map(str, self._ports)
        where = ["--host", HOST, "--port", port, "--webui-port", page]
        return self._start("master", "org.apache.spark.deploy.master.Master", where, {})

    def _start_worker(self, number: int) -> Child:
        work = self.folder / f"work-{number}"
        size = [
            "--cores",
            "1",
            "--memory",
            "1g",
            "--work-dir",
            str(work),
            "--host",
            HOST,
            "--webui-port",
            "0",
        ]
        arguments = [*size, self.master]
        name = "org.apache.spark.deploy.worker.Worker"
        return self._start(f"worker-{number}", name, arguments, self._worker_environment)

    def _start(self, name: str, main: str, arguments: list[str], environment: Mapping[str, str]) -> Child:
        command = [str(self._home / "bin" / "spark-class"), main, *arguments]
        here = {"SPARK_HOME": str(self._home), "SPARK_LOCAL_IP": HOST, **SMALL}
        given = {**_bare_environment(), **here, **environment}
        return self._processes.start(name, command, cwd=self.folder, env=given)

    def _wait(self, workers: int) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not self._has(workers):
            for child in self._children:
                child.check()
            if time.monotonic() > deadline:
                logs = "\n".join(f"--- {child.name}\n{child.log_tail()}" for child in self._children)
                raise LocalKafkaError(
                    f"Spark was not ready with {workers} workers after {READY_SECONDS} s:\n{logs}"
                )
            time.sleep(0.2)

    def _has(self, workers: int) -> bool:
        try:
            return int(self.state()["aliveworkers"]) >= workers
        except OSError:
            return False


def _bare_environment() -> dict[str, str]:
    """Enough to find Java, and nothing else that this process knows: it may know where kclient is."""
    return {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "HOME", "LANG") if name in os.environ}


def _free_port() -> int:
    with socket.socket() as attempt:
        attempt.bind((HOST, 0))
        return int(attempt.getsockname()[1])

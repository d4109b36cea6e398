"""kill -9 of driver, JVM and Python workers at random moments, while records keep coming: each record counts once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs
import pytest

from kclient.embedded import EmbeddedCluster
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.sink import manifest, spark_metadata
from kclient.spark.sink.manifest import gc
from localspark import JAVA_OPTIONS
from tests.spark.jobs.support import Landed, fill, landed_in, repeated

pytestmark = [pytest.mark.slow, pytest.mark.spread, pytest.mark.timeout(900)]

KILLS = 3
PATIENCE_SECONDS = 240
ROOT = Path(__file__).parents[3]
CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
}
COUNTED: dict[str, Callable[[Path], list[str]]] = {"spark": spark_metadata.files, "direct": manifest.files}


@attrs.define
class Job:
    """One job of Spark, run in processes of a session of their own as often as it is started."""

    command: list[str]
    checkpoint: Checkpoint
    log: Path

    @classmethod
    def of(cls, cluster: EmbeddedCluster, root: Path, writer: str) -> Job:
        where = ["-b", cluster.bootstrap_servers, "--topics", "orders", "--sink", f"parquet:{root / 'sink'}"]
        how = ["--writer", writer, "--checkpoint", str(root / "checkpoint")]
        conf = [part for pair in CONF.items() for part in ("--conf", "=".join(pair))]
        command = [sys.executable, "-m", "kclient", "ingest", *where, *how, "--master", "local[2,4]", *conf]
        return cls(command, Checkpoint(root / "checkpoint"), root / "log")

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*self.command, *more],
                cwd=ROOT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def begun(self) -> int:
        """How many batches have been begun."""
        directory = self.checkpoint.path / "offsets"
        names = [path.name for path in directory.iterdir()] if directory.is_dir() else []
        return max((int(name) + 1 for name in names if name.isdigit()), default=0)

    def killed_at_work(self, delay: float) -> None:
        """Run it, and kill everything `delay` seconds after it began a batch that no run had begun."""
        before, process = self.begun(), self.start("--trigger", "100ms", "--max-per-trigger", "100")
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while self.begun() == before:
                assert process.poll() is None, self.log.read_text()[-3000:]
                assert time.monotonic() < deadline, self.log.read_text()[-3000:]
                time.sleep(0.02)
            time.sleep(delay)
            assert process.poll() is None, self.log.read_text()[-3000:]
        finally:
            kill_session(process)

    def drain(self) -> None:
        """Run it until all is there."""
        process = self.start("--trigger", "availableNow")
        try:
            assert process.wait(PATIENCE_SECONDS) == 0, self.log.read_text()[-3000:]
        finally:
            kill_session(process)


def kill_session(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL for the process and all that it started, whatever groups these made: driver, JVM, daemon, workers."""
    while pids := [pid for pid, session in sessions() if session == process.pid]:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.poll()
        time.sleep(0.01)
    process.wait()


def sessions() -> Iterator[tuple[int, int]]:
    """Every process that runs, and its session."""
    for path in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            pid = int(path.name)
            state, _, _, session = (path / "stat").read_text().rpartition(")")[2].split()[:4]
            if state != "Z":
                yield pid, int(session)


@contextmanager
def producing(cluster: EmbeddedCluster, wanted: list[Landed]) -> Iterator[None]:
    """Records that keep coming from another thread until the block ends."""
    with repeated(lambda: wanted.extend(fill(cluster, 10, first=len(wanted))), 0.1):
        yield


@pytest.mark.exhaustive
@pytest.mark.spec("ST-13", "SP-81", "SP-82")
@pytest.mark.parametrize("writer", ["spark", "direct"])
def test_killed_at_random_moments_each_record_counts_once(
    cluster: EmbeddedCluster, tmp_path: Path, writer: str
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    wanted: list[Landed] = []
    job, sink = Job.of(cluster, tmp_path, writer), tmp_path / "sink"
    with producing(cluster, wanted):
        for _ in range(KILLS):
            job.killed_at_work(moments.uniform(0, 3))
    job.drain()
    counted = COUNTED[writer](sink)
    assert len(counted) == len(set(counted))
    assert landed_in(counted) == sorted(wanted)
    assert job.begun() > KILLS
    if writer == "direct":
        assert manifest.count(sink) == len(wanted)
        gc(sink, apply=True, min_age_ms=0)
        assert sorted(str(path) for path in sink.rglob("*.parquet")) == sorted(counted)
    assert landed_in(COUNTED[writer](sink)) == sorted(wanted)

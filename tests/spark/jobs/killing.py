"""An ingest job that kills itself with SIGKILL: `python -m tests.spark.jobs.killing SETTINGS STEP TIMES`.

TIMES is how often the step is passed unharmed. A job that is not killed exits with 0.
"""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kclient.spark.group_progress import GroupCommitter
from kclient.spark.ingest import run as ingest
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.ingest.run_epoch import RunEpoch
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.sink import manifest, parquet
from tests.spark.jobs.support import RecordingReporter


class Step(NamedTuple):
    """A function, and whether the process dies before or after it."""

    owner: Any
    name: str
    when: Literal["before", "after"]


STEPS: Mapping[str, Step] = {
    "before the job is claimed": Step(Checkpoint, "claim", "before"),
    "after the job is claimed": Step(Checkpoint, "claim", "after"),
    "after the start is kept": Step(Checkpoint, "store_start", "after"),
    "before the offsets are written": Step(Checkpoint, "begin", "before"),
    "after the offsets are written": Step(Checkpoint, "begin", "after"),
    "after a temporary file": Step(parquet, "publish", "before"),
    "after a rename": Step(parquet, "publish", "after"),
    "before the manifest": Step(manifest, "write", "before"),
    "after the manifest": Step(manifest, "write", "after"),
    "after the commit": Step(Checkpoint, "commit", "after"),
    "before the group's commit": Step(GroupCommitter, "commit", "before"),
    "after the group's commit": Step(GroupCommitter, "commit", "after"),
}
OBJECT_STORE_STEPS: Mapping[str, Step] = {
    **{name: step for name, step in STEPS.items() if step.owner in (Checkpoint, GroupCommitter)},
    "before the run is numbered": Step(RunEpoch, "claim", "before"),
    "after the run is numbered": Step(RunEpoch, "claim", "after"),
    "before an upload ends": Step(parquet.Upload, "finish", "before"),
    "after an upload": Step(parquet.Upload, "finish", "after"),
    "before the manifest": Step(manifest, "create", "before"),
    "after the manifest": Step(manifest, "create", "after"),
    "before the dead letters' manifest": Step(manifest, "write", "before"),
    "after the dead letters' manifest": Step(manifest, "write", "after"),
}
"""The same for a sink and a checkpoint in an object store."""

LATER = ("after the offsets are written", "after a rename", "after the manifest", "before the group's commit")
"""Steps at which a later batch is killed too."""


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def plant(step: Step, times: int) -> None:
    """Let the process die at the step, when it was passed `times` times."""
    works: Callable[..., Any] = getattr(step.owner, step.name)
    left = times

    def deadly(*args: Any, **kwargs: Any) -> Any:
        nonlocal left
        if not left and step.when == "before":
            die()
        result = works(*args, **kwargs)
        if not left and step.when == "after":
            die()
        left -= 1
        return result

    static = isinstance(inspect.getattr_static(step.owner, step.name), staticmethod)
    setattr(step.owner, step.name, staticmethod(deadly) if static else deadly)


def steps_of(settings: Mapping[str, Any]) -> Mapping[str, Step]:
    """Return the steps of a job by its sink."""
    return OBJECT_STORE_STEPS if "s3://" in settings["sink"] else STEPS


def killed(settings: Mapping[str, Any], step: str, times: int, module: str = __name__) -> int:
    """Run a job in a process of its own until it dies; its exit code. `module` has the steps."""
    command = [sys.executable, "-m", module, json.dumps(settings), step, str(times)]
    root = Path(__file__).parents[3]
    return subprocess.run(command, cwd=root, timeout=60, check=False).returncode


def main(steps: Mapping[str, Step]) -> None:
    """Run the job of the arguments, and die at its step."""
    plant(steps[sys.argv[2]], int(sys.argv[3]))
    ingest.run(IngestSettings.parse(json.loads(sys.argv[1])), RecordingReporter())


if __name__ == "__main__":
    main(steps_of(json.loads(sys.argv[1])))

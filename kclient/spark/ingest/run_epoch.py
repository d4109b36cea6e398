"""The epoch of a run: which run of a checkpoint in an object store is the newest, where no lock can be held.

    start    put-if-absent kclient/runs/000000000007     from here on this is the newest run
    step     list kclient/runs                            an older run finds a newer one, and ends: it is fenced

As with a producer's epoch the newest run wins, not the first. A checkpoint may be put back to a copy: so a run begins
above the epoch of the sink's newest batch, and ends when the object that it created is gone. The check alone would be
too late for a run that pauses after it. What such a run writes next does no harm:

| it writes | |
|---|---|
| where a batch ends | create once: it goes on with what is there |
| files | names that only its own attempt has |
| a manifest | create once: one manifest for each batch, whichever run wrote it |
| dead letters' manifest | follows from the sink's manifest, so each run writes the same |

A directory is locked instead (`atomic_files.locked`), and its epoch stays 0. Pure of Spark.
"""

from __future__ import annotations

import json
import re
from typing import Final

import attrs

from kclient.errors import SinkError
from kclient.runtime import Runtime
from kclient.spark.sink.store import Store, is_remote, store_of

RUNS: Final = "kclient/runs"
KEPT: Final = 10
"""Earlier runs that stay listed. The newest is never deleted, so the numbers only grow."""

TRIES: Final = 10
_NUMBER: Final = re.compile(r"[0-9]{12}", re.ASCII)


@attrs.define
class RunEpoch:
    """The epoch of one run of a checkpoint: 0 until it is claimed, and always 0 in a directory."""

    checkpoint: str
    token: str
    number: int = 0

    def claim(self, above: int = 0, runtime: Runtime | None = None) -> None:
        """Become the newest run, with an epoch `above` that of the sink's newest batch. Raises SinkError."""
        if not is_remote(self.checkpoint):
            return
        store = store_of(self.checkpoint)
        content = {"token": self.token, "began_ms": (runtime or Runtime()).wall_ms()}
        for _ in range(TRIES):
            number = max([above, *_runs(store)]) + 1
            if store.put_if_absent(_key(number), json.dumps(content).encode()):
                self.number = number
                break
        else:
            raise SinkError(
                f"{self.checkpoint} is claimed by other runs again and again: {TRIES} began meanwhile. Something "
                "starts this job in a loop, or on many machines. Stop the others, and start again.",
                path=self.checkpoint,
            )
        for old in _runs(store):
            if old <= self.number - KEPT:
                store.delete(_key(old))

    def check(self) -> None:
        """Raise SinkError if a newer run of the checkpoint has begun: this one is fenced."""
        if not self.number:
            return
        runs = _runs(store_of(self.checkpoint))
        if max(runs, default=0) > self.number:
            raise fenced(self.checkpoint)
        if self.number not in runs:
            raise SinkError(
                f"{self.checkpoint} has lost {_key(self.number)}, by which this run is known: the checkpoint was put "
                "back to a copy, or its objects were deleted, and another run may work there. Nothing counts twice. "
                "Let one run of this job start again.",
                path=self.checkpoint,
            )


def fenced(where: str) -> SinkError:
    """Return the error of a run that a newer one has replaced."""
    return SinkError(
        f"A newer run of this job works on {where}: this run is fenced, and ends. It was started a second time, or "
        "this one had paused for long. The newer run lands the same records, and nothing counts twice: there is "
        "nothing to do, but to start the job in one place only.",
        path=where,
    )


def _runs(store: Store) -> list[int]:
    names = (found.key.rpartition("/")[2] for found in store.list(RUNS))
    return [int(name) for name in names if _NUMBER.fullmatch(name)]


def _key(number: int) -> str:
    return f"{RUNS}/{number:012d}"

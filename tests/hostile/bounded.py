"""Run one function in a process of its own, with a limit on its memory and its time.

The function is one of a module, by its name, so that the child imports nothing of the test that starts it:

    outcome = run_bounded("tests.hostile.batches:poll_header_bomb", seconds=2, peak_mb=250)
    assert outcome.result == "CorruptBatchError"

Arguments and the result are JSON. A coroutine function runs on an event loop of its own; `blocked` is the longest time
for which it kept that loop from everything else.

    seconds            of the call: what it computed, or how long it took if that is more; not counted are imports, and
                       time in which the machine did not run the process although it could have
    peak_mb            the largest resident size of the child, imports included
    address_space_mb   RLIMIT_AS of the child: a runaway ends in MemoryError before it takes the machine with it
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import attrs

from tests.realtime import within

ROOT: Final = Path(__file__).parents[2]
MIB: Final = 1024 * 1024
SLOW_MACHINE: Final = 4.0  # how much longer than its limit a child may live before it is killed
START_SECONDS: Final = 60.0
TICK_SECONDS: Final = 0.005


@attrs.frozen
class Outcome:
    """What the function returned, and what it cost."""

    result: Any
    seconds: float
    peak_mb: float
    blocked: float


def run_bounded(
    function: str, *args: Any, seconds: float, peak_mb: float, address_space_mb: int = 4096
) -> Outcome:
    """Call `module:function` with `args` in a child. Fails if it raises, takes too long, or takes too much memory."""
    task = json.dumps({"function": function, "args": args, "address_space_mb": address_space_mb})
    child = subprocess.run(
        [sys.executable, "-m", "tests.hostile.bounded"],
        input=task,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SLOW_MACHINE * seconds + START_SECONDS,
        check=False,
    )
    assert child.returncode == 0, f"{function} ended with {child.returncode}:\n{child.stderr[-4000:]}"
    outcome = Outcome(**json.loads(child.stdout.splitlines()[-1]))
    assert outcome.seconds <= seconds, f"{function} took {outcome.seconds:.2f} s, not {seconds:g} s"
    assert outcome.peak_mb <= peak_mb, f"{function} took {outcome.peak_mb:.0f} MB, not {peak_mb:g} MB"
    return outcome


def _child(task: str) -> None:
    asked = json.loads(task)
    limit = asked["address_space_mb"] * MIB
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    module, name = asked["function"].split(":")
    function = getattr(importlib.import_module(module), name)
    pace, waited, computed = within(float("inf")), _kept_waiting(), time.process_time()
    with pace:
        result, blocked = _call(function, asked["args"])
    # The kernel knows better than the watch of `pace`: a C call that keeps the GIL stops that thread too, and many
    # short waits for a busy core escape it.
    lost = max(pace.lost, _kept_waiting() - waited)
    seconds = max(pace.seconds - lost, time.process_time() - computed)
    print(json.dumps({"result": result, "seconds": seconds, "peak_mb": _peak_mb(), "blocked": blocked}))


def _call(function: Callable[..., Any], args: list[Any]) -> tuple[Any, float]:
    if inspect.iscoroutinefunction(function):
        return asyncio.run(_watched(function(*args)))
    return function(*args), 0.0


async def _watched(work: Coroutine[Any, Any, Any]) -> tuple[Any, float]:
    """What the coroutine returns, and the longest time that the loop's thread computed between two looks."""
    task, longest, before = asyncio.ensure_future(work), 0.0, time.thread_time()
    while not task.done():
        await asyncio.wait([task], timeout=TICK_SECONDS)
        now = time.thread_time()
        longest, before = max(longest, now - before), now
    return task.result(), longest


def _kept_waiting() -> float:
    """For how many seconds the threads that are there could have run, and got no core."""
    waited = 0
    for path in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread ended since it was listed
            waited += int(path.read_text().split()[1])
    return waited / 1e9


def _peak_mb() -> float:
    """Not ru_maxrss where it can be helped: Linux lets a child inherit the peak of the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / MIB if sys.platform == "darwin" else peak / 1024


if __name__ == "__main__":
    _child(sys.stdin.read())

"""What is not of this world while one stands: clocks and randomness are replaced, waiting and threads are refused."""

from __future__ import annotations

import itertools
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from kclient.config import rules

if TYPE_CHECKING:
    from tests.simulation.loop import SimLoop


class SimForbidden(RuntimeError):
    """Code under simulation reached for the real world."""


@contextmanager
def patched(loop: SimLoop, rng: Random, wall_clock: Callable[[], float]) -> Iterator[None]:
    """Replace the clocks and randomness of the process; refuse what waits or leaves it."""
    state = random.getstate()
    random.seed(rng.random())
    with ExitStack() as stack:
        for module, name, value in _replacements(loop, rng, wall_clock):
            stack.enter_context(patch.object(module, name, value))
        try:
            yield
        finally:
            random.setstate(state)


def _replacements(
    loop: SimLoop, rng: Random, wall_clock: Callable[[], float]
) -> Iterator[tuple[Any, str, Any]]:
    yield time, "time", wall_clock
    yield time, "time_ns", lambda: int(wall_clock() * 1e9)
    for name in ("monotonic", "perf_counter"):
        yield time, name, loop.time
        yield time, f"{name}_ns", lambda: int(loop.time() * 1e9)
    yield os, "urandom", rng.randbytes
    yield random, "_urandom", rng.randbytes  # SystemRandom, and with it `secrets`
    yield time, "sleep", _refused("time.sleep", time.sleep)
    yield threading.Thread, "start", _refused("threading.Thread.start", threading.Thread.start)
    yield socket.socket, "connect", _refused("socket.socket.connect", socket.socket.connect)
    yield sys, "unraisablehook", _told(loop)
    yield rules, "_consumers", itertools.count(1)  # client ids are counted by process


def _refused(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse it to the thread that runs the world; another one, of a library that waits, is none of the world's."""
    here = threading.get_ident()

    def refuse(*args: Any, **keywords: Any) -> Any:
        if threading.get_ident() != here:
            return real(*args, **keywords)
        raise SimForbidden(f"{name} was called while a seed runs")

    return refuse


def _told(loop: SimLoop) -> Callable[[Any], None]:
    def tell(unraisable: Any) -> None:
        loop.call_exception_handler(
            {"message": str(unraisable.err_msg or "ignored"), "exception": unraisable.exc_value}
        )

    return tell

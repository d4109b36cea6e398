"""Functions that show that `run_bounded` notices what it is there to notice."""

from __future__ import annotations

import asyncio
import time


def add(one: int, other: int) -> int:
    return one + other


def compute(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def wait(seconds: float) -> None:
    time.sleep(seconds)


def fill(megabytes: int) -> int:
    return len(bytearray(b"x") * (megabytes * 1024 * 1024))


async def block_the_loop(seconds: float) -> str:
    await asyncio.sleep(0)
    compute(seconds)
    await asyncio.sleep(0)
    return "done"

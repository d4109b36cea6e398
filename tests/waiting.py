"""Wait for a condition that sends no signal, in the time of the running loop, real or virtual."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


async def until(condition: Callable[[], Any], seconds: float = 60.0) -> None:
    """Return when the condition is true. Raise TimeoutError after `seconds`."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 – anything may make it true
            await asyncio.sleep(0.005)

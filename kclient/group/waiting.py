"""Waiting for the first of several changes."""

from __future__ import annotations

import asyncio

from kclient.notice import Notice


async def first_change(*watched: tuple[Notice, int]) -> None:
    """Return when any notice is beyond the count that was seen of it. Nothing is left running, cancelled or not."""
    waits = [asyncio.ensure_future(notice.wait(seen)) for notice, seen in watched]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)

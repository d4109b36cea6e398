"""How applications end: woken while they close, or by an exception in a handler, under each way of closing.

Drawn from a generator of its own, and only where the scenario says `endings`: other seeds keep their history.

    woken              wakeups come before and during close(), for which the listener commits too
    finally            a handler raises, and a finally closes
    exit stack         a handler raises, and an AsyncExitStack closes
    lifespan           the task that reads is cancelled inside of a handler, and another one closes
    forsaken           another task closes while the one that reads is inside of a handler
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from random import Random
from typing import TYPE_CHECKING, Final

from kclient import AsyncConsumer
from kclient.errors import ClosedError, KclientError

if TYPE_CHECKING:
    from tests.simulation.application import Member

PLAIN: Final = ""
WOKEN: Final = "woken"
WAYS: Final = (WOKEN, "finally", "exit stack", "lifespan", "forsaken")
POLL_SECONDS: Final = 2.0


class Died(Exception):
    """A handler raised it."""


def draw_ending(member: Member) -> str:
    """How this incarnation ends. In the quiet phase no application dies."""
    if not member.stage.scenario.endings:
        return PLAIN
    drawn = Random(f"{member.stage.world.seed}:{member}:ending").choice(WAYS)
    return WOKEN if member.stage.quiet else drawn


async def close(member: Member, consumer: AsyncConsumer, ending: str, timeout: float) -> None:
    """End in this way. An application that dies has taken records that it has not processed."""
    match ending:
        case "woken":
            await _woken(member, consumer, timeout)
        case "finally":
            with suppress(Died):
                try:
                    await _die(member, consumer)
                finally:
                    await consumer.close(timeout)
        case "exit stack":
            with suppress(Died):
                async with AsyncExitStack() as stack:
                    stack.push_async_callback(consumer.close, timeout)
                    await _die(member, consumer)
        case "lifespan":
            await _lifespan(member, consumer, timeout)
        case "forsaken":
            await _take_more(member, consumer)
            await asyncio.create_task(consumer.close(timeout), name=f"application {member}")
        case _:
            await consumer.close(timeout)


async def _woken(member: Member, consumer: AsyncConsumer, timeout: float) -> None:
    if member.stage.scenario.commit == "async":
        member.commit_async(consumer)
    consumer.wakeup()
    waking = asyncio.create_task(_wake(member, consumer), name=f"application {member}")
    try:
        await consumer.close(timeout)
    finally:
        waking.cancel()
        await asyncio.wait([waking])


async def _wake(member: Member, consumer: AsyncConsumer) -> None:
    with suppress(ClosedError):
        while True:
            consumer.wakeup()
            await asyncio.sleep(member.rng.uniform(0.001, 0.05))


async def _die(member: Member, consumer: AsyncConsumer) -> None:
    await _take_more(member, consumer)
    raise Died


async def _lifespan(member: Member, consumer: AsyncConsumer, timeout: float) -> None:
    in_a_handler = asyncio.Event()

    async def read() -> None:
        await _take_more(member, consumer)
        in_a_handler.set()
        await asyncio.sleep(600)

    reading = asyncio.create_task(read(), name=f"application {member}")
    await in_a_handler.wait()
    reading.cancel()
    await asyncio.wait([reading])
    await consumer.close(timeout)


async def _take_more(member: Member, consumer: AsyncConsumer) -> None:
    """One more poll, or two: the wakeup that ended the loop may end the first."""
    for _ in range(2):
        with suppress(KclientError):
            await member.poll_once(consumer, POLL_SECONDS)
            return

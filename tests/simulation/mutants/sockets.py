"""A bug that only the kernel sees, M-124: its script uses real sockets and real time, and no seed."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from typing import Any, Final

from kclient import AsyncConsumer
from kclient.errors import KclientError
from kclient.network import connect
from kclient.network.connection import Connection
from tests.simulation.mutants.table import Patch, Symptoms, mutant

ATTEMPTS: Final = 5
ATTEMPT_SECONDS: Final = 0.1
MOST_AT_ONCE: Final = 2  # one that is being tried, one that is just being closed


def mute_broker(seed: int) -> Symptoms:
    """Who never answers the first request costs one socket at a time, not one with each attempt. I-36."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as mute:
        return asyncio.run(_knock(f"127.0.0.1:{mute.getsockname()[1]}"))


async def _knock(address: str) -> Symptoms:
    attempts = 0

    async def counted(*args: Any, **options: Any) -> Any:
        nonlocal attempts
        attempts += 1
        return await before_connect(*args, **options)

    before_connect, connect._connect = connect._connect, counted
    before, most = _sockets(), 0
    consumer = AsyncConsumer(
        "events",
        group_id="readers",
        bootstrap_servers=address,
        socket_connection_setup_timeout_ms=int(ATTEMPT_SECONDS * 1000),
        socket_connection_setup_timeout_max_ms=int(ATTEMPT_SECONDS * 1000),
        reconnect_backoff_ms=10,
        reconnect_backoff_max_ms=10,
    )
    try:
        while attempts < ATTEMPTS:
            with suppress(KclientError):
                await consumer.poll(ATTEMPT_SECONDS)
            most = max(most, _sockets() - before)
    finally:
        connect._connect = before_connect
        await consumer.close(1.0)
    return [] if most <= MOST_AT_ONCE else [("I-36", f"{most} sockets are open after {attempts} attempts")]


def _sockets() -> int:
    """How many this process has open."""
    count = 0
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # it was closed meanwhile
            count += os.readlink(f"/proc/self/fd/{number}").startswith("socket:")
    return count


@mutant("M-124", "I-36", look=mute_broker)
def socket_left_open(patch: Patch) -> None:
    """Forget the socket of a connection whose handshake has failed."""

    def close(self: Connection) -> None:
        if self.ready:
            before(self)

    before = patch.put(Connection, "close", close)

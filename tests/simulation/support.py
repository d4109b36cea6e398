"""What the tests of the simulation share: ends that write down what they hear, connected pairs, other processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from kclient.simulation.network import Host, SimConnection
from kclient.simulation.world import World

PORT = 9092
ROOT = Path(__file__).parent.parent.parent


class RecordingProtocol(asyncio.Protocol):
    """Records received bytes and events, with the time. `answer` says what to write back to each piece."""

    def __init__(self, answer: Callable[[bytes], bytes] | None = None, *, keeps_open: bool = False) -> None:
        self.pieces: list[bytes] = []
        self.times: list[float] = []
        self.events: list[str] = []
        self.problem: BaseException | None = None
        self.lost_at: float | None = None
        self.transport: Any = None
        self._answer, self._keeps_open = answer, keeps_open

    @property
    def heard(self) -> bytes:
        return b"".join(self.pieces)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        assert type(data) is bytes
        self.pieces.append(data)
        self.times.append(asyncio.get_running_loop().time())
        if self._answer is not None:
            self.transport.write(self._answer(data))

    def eof_received(self) -> bool:
        self.events.append("eof")
        return self._keeps_open

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")

    def connection_lost(self, exc: BaseException | None) -> None:
        self.events.append("lost")
        self.problem = exc
        self.lost_at = asyncio.get_running_loop().time()


class RecordingBufferedProtocol(asyncio.BufferedProtocol):
    """Takes at most `room` bytes at a time."""

    def __init__(self, room: int) -> None:
        self.pieces: list[bytes] = []
        self.transport: Any = None
        self.lost = False
        self._buffer = bytearray(room)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.pieces.append(bytes(self._buffer[:nbytes]))

    def connection_lost(self, exc: BaseException | None) -> None:
        self.lost = True


@attrs.frozen
class Pair:
    """Two hosts with one connection: `near` dialled, `far` accepted."""

    a: Host
    b: Host
    near: Any
    far: Any
    way: SimConnection

    @property
    def transport(self) -> Any:
        return self.way.client


async def connected(world: World, near: Any = None, far: Any = None, **options: Any) -> Pair:
    """Connect a protocol on host a to one on host b."""
    a, b = world.host("a"), world.host("b")
    near, far = near or RecordingProtocol(), far or RecordingProtocol()
    loop = world.loop
    await b.start(loop.create_server(lambda: far, "b", PORT))
    await a.start(loop.create_connection(lambda: near, "b", PORT, **options))
    await asyncio.sleep(0.1)
    (way,) = world.network.between("a", "b")
    return Pair(a, b, near, far, way)


def plain(world: World, **settings: Any) -> None:
    """Neither jitter nor random cuts on the wire, so that times are known."""
    wire = world.network.default
    for name, value in {"latency": 0.01, "jitter": 0.0, "split": 0.0, "coalesce": 0.0, **settings}.items():
        setattr(wire, name, value)


def in_another_process(program: str, hash_seed: str) -> str:
    """What a program prints in a process whose sets of strings iterate in another order."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.strip()

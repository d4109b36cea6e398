"""The only access to the outside: wall clock, randomness, connections, name resolution and worker threads.

Nothing else in kclient reads a clock, draws a random number, resolves a name or opens a connection. Monotonic time,
timers and connections come from the running event loop, so a loop with a virtual clock and an in-memory network
runs the whole client; wall clock and randomness come from this object, so a seed gives the same run.
"""

from __future__ import annotations

import asyncio
import queue
import random
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import attrs

T = TypeVar("T")


class Address(NamedTuple):
    """A resolved address: an IP in text form and a port."""

    ip: str
    port: int


def _system_rng() -> random.Random:
    return random.SystemRandom()  # nonces must not be predictable


@attrs.define
class Runtime:
    """The client's environment. Tests pass a seeded `rng` and their own `wall_clock`."""

    rng: random.Random = attrs.field(factory=_system_rng)
    # Looked up when it is made: a simulation replaces time.time while it runs.
    wall_clock: Callable[[], float] = attrs.field(factory=lambda: time.time)

    @classmethod
    def seeded(cls, seed: int | str) -> Runtime:
        """Return a runtime with seeded random numbers."""
        return cls(rng=random.Random(seed))

    def now(self) -> float:
        """Monotonic seconds of the running loop."""
        return asyncio.get_running_loop().time()

    def pause(self, seconds: float) -> None:
        """Block this thread: for jobs without a loop of their own, which a notebook calls on its running loop."""
        time.sleep(seconds)

    def wall_ms(self) -> int:
        """Return the milliseconds since 1970, UTC."""
        return int(self.wall_clock() * 1000)

    def buggify(self, what: str) -> bool:
        """Return whether the rare, legal event `what` shall happen now. Always False outside the simulation."""
        return False

    def random_bytes(self, count: int) -> bytes:
        """`count` random bytes, for ids and nonces."""
        return self.rng.randbytes(count)

    async def resolve(self, host: str, port: int) -> list[Address]:
        """Return the addresses of a name in the resolver's order, without repeats. Raise OSError as the loop does."""
        loop = asyncio.get_running_loop()
        answers = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        found = {Address(str(info[4][0]), int(info[4][1])): None for info in answers}
        return list(found)

    async def canonical_names(self, host: str, port: int) -> list[str]:
        """Return the canonical name of every address of a name, without repeats. Raise OSError as `resolve` does."""
        loop = asyncio.get_running_loop()
        addresses = await self.resolve(host, port)
        names = [(await loop.getnameinfo(address))[0] for address in addresses]
        return list(dict.fromkeys(names))

    async def connect(
        self, factory: Callable[[], asyncio.BaseProtocol], address: Address, **options: Any
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Open one TCP (or, with `ssl=`, TLS) connection. Raises OSError as the loop does."""
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.create_connection(factory, address.ip, address.port, **options)
        return transport, protocol

    def set_buffers(self, transport: asyncio.Transport, send_bytes: int, receive_bytes: int) -> None:
        """Size the kernel's buffers of a connection; -1 leaves the system's choice. No socket, no buffers."""
        sock = transport.get_extra_info("socket")
        for option, size in ((socket.SO_SNDBUF, send_bytes), (socket.SO_RCVBUF, receive_bytes)):
            if sock is not None and size >= 0:
                sock.setsockopt(socket.SOL_SOCKET, option, size)

    def within(self, seconds: float, call: Callable[[], T]) -> T:
        """Block this thread until a call has ended that has no time-out of its own.

        Raises TimeoutError after `seconds`; the call goes on then, on a thread that does not keep the process alive.
        """
        outcome: queue.SimpleQueue[tuple[T] | BaseException] = queue.SimpleQueue()

        def work() -> None:
            try:
                outcome.put((call(),))
            except BaseException as exc:  # noqa: BLE001 – raised where the caller waits
                outcome.put(exc)

        threading.Thread(target=work, name="kclient-call", daemon=True).start()
        try:
            ended = outcome.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError(f"no answer in {seconds:g} s") from None
        if isinstance(ended, BaseException):
            raise ended
        return ended[0]

    async def offload(self, function: Callable[..., T], *args: object) -> T:
        """Run blocking or long work off the loop."""
        return await asyncio.get_running_loop().run_in_executor(None, function, *args)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs on this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None

"""The ways out of a simulated loop: connections, ports and names lead to its network, executors nowhere."""

from __future__ import annotations

import asyncio
from asyncio import base_events
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.simulation.network import Network

OFFLOAD_SECONDS: Final = 0.01


class Doors(base_events.BaseEventLoop):
    """See the module."""

    rng: Random

    def __init__(self) -> None:
        super().__init__()
        self._network: Network | None = None

    @property
    def network(self) -> Network:
        """The network that this loop is on. Raises OSError without one."""
        if self._network is None:
            raise OSError("this loop has no network")
        return self._network

    @network.setter
    def network(self, network: Network) -> None:
        self._network = network

    async def create_connection(self, factory: Callable[[], Any], *args: Any, **options: Any) -> Any:
        return await self.network.create_connection(factory, *args, **options)

    async def create_server(self, factory: Callable[[], Any], *args: Any, **options: Any) -> Any:
        return await self.network.create_server(factory, *args, **options)

    async def getaddrinfo(self, host: Any, port: Any, **hints: Any) -> list[Any]:
        return await self.network.getaddrinfo(host, port)

    async def getnameinfo(self, sockaddr: tuple[Any, ...], flags: int = 0) -> tuple[str, str]:
        return await self.network.getnameinfo(sockaddr)

    def run_in_executor(
        self, executor: object, func: Callable[..., Any], *args: object
    ) -> asyncio.Future[Any]:
        """Run `func` here, in one piece, after a seeded delay; not at all if no task waits for it before that."""
        done = self.create_future()
        timer = self.call_later(self.rng.random() * OFFLOAD_SECONDS, _run_into, done, func, args)
        done.add_done_callback(lambda _: timer.cancel())
        return done


def _run_into(done: asyncio.Future[Any], func: Callable[..., Any], args: tuple[object, ...]) -> None:
    if done.cancelled():
        return
    try:
        done.set_result(func(*args))
    except Exception as exc:  # noqa: BLE001 – the task that awaits gets it
        done.set_exception(exc)

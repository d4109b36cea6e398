"""Scenarios where hours pass or sockets stay half open: an embedded cluster on simulated hosts, and one client's host.

    async def scenario(place: Place) -> None:
        consumer = place.consumer("t", group_id="g")
        await place.on_member(consumer.poll(1.0))

    simulate(scenario, brokers=2, topics={"t": 1})

The scenario itself runs on no host, so that whatever it does to the cluster happens to hosts whatever befalls them;
what the client does runs on the host "member".
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import attrs

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.embedded.listener import Factory, Listener
from kclient.embedded.observer import LoggedRequest
from kclient.records.records import Record
from kclient.runtime import Address, Runtime
from kclient.simulation.world import Outcome, World, run
from tests.scenarios.support import SETTINGS
from tests.simulation.support import PORT, plain

T = TypeVar("T")


@attrs.frozen
class Dial:
    """One attempt to connect: when it began and ended, and what came of it (None: a connection)."""

    began: float
    ended: float
    ip: str
    problem: BaseException | None


@attrs.define
class WatchedRuntime(Runtime):
    """A runtime that writes down whom the client dials and which names it looks up."""

    dials: list[Dial] = attrs.field(factory=list)
    looked_up: list[tuple[float, str]] = attrs.field(factory=list)

    async def resolve(self, host: str, port: int) -> list[Address]:
        self.looked_up.append((self.now(), host))
        return await Runtime.resolve(self, host, port)

    async def connect(self, factory: Any, address: Address, **options: Any) -> Any:
        began, problem = self.now(), None
        try:
            return await Runtime.connect(self, factory, address, **options)
        except BaseException as exc:
            problem = exc
            raise
        finally:
            self.dials.append(Dial(began, self.now(), address.ip, problem))


@attrs.define
class Place:
    """See the module."""

    world: World
    cluster: EmbeddedCluster
    factories: dict[str, Factory]  # by the host that a broker listens on
    runtime: WatchedRuntime
    opened: list[AsyncConsumer] = attrs.field(factory=list)

    @property
    def now(self) -> float:
        return self.world.loop.time()

    @property
    def network(self) -> Any:
        return self.world.network

    def consumer(self, *topics: str, **settings: Any) -> AsyncConsumer:
        """A consumer for the member's host; it is closed when the scenario is over."""
        servers = ",".join(f"broker-{node}:{PORT}" for node in self.cluster.state.brokers)
        keys = {**SETTINGS, "bootstrap_servers": servers, **settings}
        self.opened.append(AsyncConsumer(*topics, runtime=self.runtime, **keys))
        return self.opened[-1]

    async def on_member(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something of the client on its own host."""
        done: T = await self.network.by_name["member"].start(work)
        return done

    async def read(
        self, consumer: AsyncConsumer, count: int, seconds: float = 600.0
    ) -> list[Record[Any, Any]]:
        """So many records, no more and no fewer."""
        found: list[Record[Any, Any]] = []
        async with asyncio.timeout(seconds):
            while len(found) < count:
                found += await self.on_member(consumer.poll(1.0))
        assert len(found) == count
        return found

    async def poll_until(
        self, consumer: AsyncConsumer, condition: Callable[[], object], seconds: float = 600.0
    ) -> list[Record[Any, Any]]:
        """Go on polling until something holds; what came meanwhile."""
        found: list[Record[Any, Any]] = []
        async with asyncio.timeout(seconds):
            while not condition():
                found += await self.on_member(consumer.poll(0.1))
        return found

    def asked(self, api: str, since: float = 0.0, node: int | None = None) -> list[LoggedRequest]:
        """The requests of one API that came from a moment on, oldest first."""
        found = [one for one in self.cluster.requests if one.api == api and one.at >= since]
        return [one for one in found if node in (None, one.node)]

    def links(self, host: str) -> set[int]:
        """The numbers of the connections that the client holds open to a host."""
        ways = self.network.between("member", host)
        return {way.client.number for way in ways if not way.client.gone}

    async def listen_also(self, host: str, node: int, address: str) -> None:
        """Let a broker be reached on another host of the network as well."""
        self.world.host(host, address)
        await self.world.loop.create_server(self.factories[f"broker-{node}"], address, PORT)


def simulate(
    scenario: Callable[[Place], Awaitable[T]],
    *,
    brokers: int = 1,
    seed: int = 1,
    limit: float = 7200.0,
    **options: Any,
) -> Outcome[T]:
    """Run a scenario in a world of its own; the client must leave nothing behind on its host."""

    async def main(world: World) -> T:
        plain(world)
        factories: dict[str, Factory] = {}

        async def serve(factory: Factory, listener: Listener) -> asyncio.Server:
            factories[listener.host] = factory
            known = world.network.by_name.get(listener.host)
            if known is None or not known.alive:
                world.host(listener.host)
            return await world.loop.create_server(factory, listener.host, listener.port)

        addresses = [(f"broker-{node + 1}", PORT) for node in range(brokers)]
        runtime = world.runtime("cluster")
        async with EmbeddedCluster(
            brokers, addresses=addresses, runtime=runtime, serve=serve, **options
        ) as cluster:
            member = world.host("member")
            seeded = world.runtime("member")
            place = Place(
                world, cluster, factories, WatchedRuntime(rng=seeded.rng, wall_clock=seeded.wall_clock)
            )
            result = await scenario(place)
            world.network.heal_all()
            for consumer in place.opened:
                await member.start(consumer.close())
            await asyncio.sleep(1)
            assert member.leftovers() == []
        return result

    outcome = run(seed, main, limit=limit)
    assert outcome.findings == ()
    return outcome


def has_left(place: Place) -> bool:
    """Whether the member sent LeaveGroup, or a heartbeat with epoch -1."""
    heartbeats = [one.request.member_epoch for one in place.asked("ConsumerGroupHeartbeat")]
    return bool(place.asked("LeaveGroup")) or -1 in heartbeats

"""What goes wrong in a simulation: faults drawn from a seed, or written down by the test, begun and ended by time.

    kind                target    from its start to its end
    kill_member         member    SIGKILL; started again at the end
    roll_member         member    SIGTERM, as a deployment sends it; started again at the end, by force if need be
    pause_member        member    SIGSTOP; goes on at the end: what it did not know meanwhile, it does now
    cut_member          member    no broker can be reached, and no response comes; connections stay open
    slow_member         member    each packet from and to the brokers takes half a second
    reset_connections   member    all its connections are reset, at the start
    kill_broker         broker    SIGKILL; others lead its partitions and coordinate its groups; started at the end
    pause_broker        broker    SIGSTOP; its connections stay
    cut_broker          broker    no member can reach it, the other brokers can
    rebalance           –         every group with members rebalances, at the start

A run that ends while a fault is on ends it: `FaultInjector.heal`.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final

import attrs

from kclient.embedded import EmbeddedCluster
from kclient.errors import ArgumentError
from kclient.simulation.members import SimulatedMember
from kclient.simulation.pipe import Wire
from kclient.simulation.world import World

SLOW_SECONDS: Final = 0.5
DURATIONS: Final = (0.5, 2.0, 5.0, 12.0, 25.0)  # seconds; one is drawn for each fault
LAST_START: Final = 0.9  # of the time in which faults are drawn

Undo = Callable[[], object]


@attrs.frozen
class PlannedFault:
    """One fault: `target` is the name of a member, the id of a broker, or "". Times in virtual seconds."""

    kind: str
    target: str
    start: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.start:7.2f} s  {' '.join(filter(None, (self.kind, self.target)))} for {self.seconds:.2f} s"


@attrs.define
class FaultInjector:
    """Draws and plays the faults of one simulation. `begun` are those that have begun, with their time in the run."""

    world: World
    cluster: EmbeddedCluster
    members: Mapping[str, SimulatedMember]
    begun: list[PlannedFault] = attrs.field(factory=list)
    _open: list[Undo] = attrs.field(factory=list)

    # --- the plan

    def draw(self, seconds: float, count: int, kinds: Sequence[str] | None) -> list[PlannedFault]:
        """Draw faults by the seed, in the order of their starts. Raise ArgumentError for a kind that cannot happen."""
        if not seconds > 0 or count < 1:
            raise ArgumentError(f"Faults need time and a number: {seconds!r} seconds, {count!r} faults.")
        chosen = self._possible() if kinds is None else list(kinds)
        self._check(chosen)
        rng = Random(f"{self.world.seed}:faults:{seconds}:{count}:{chosen}")
        drawn = [self._draw_one(rng, rng.choice(chosen), seconds) for _ in range(count)]
        return sorted(drawn, key=lambda fault: fault.start)

    def _possible(self) -> list[str]:
        return [name for name in KINDS if self._targets(name)]

    def _targets(self, kind: str) -> list[str]:
        if kind in MEMBER_KINDS:
            return sorted(self.members)
        return [str(node) for node in sorted(self.cluster.state.brokers)] if kind in BROKER_KINDS else [""]

    def _check(self, kinds: Sequence[str]) -> None:
        for kind in kinds:
            if kind not in KINDS:
                raise ArgumentError(f"There is no fault {kind!r}; there are {', '.join(KINDS)}.")
            if not self._targets(kind):
                raise ArgumentError(f"{kind} needs a member. Start members before you draw faults.")

    def _draw_one(self, rng: Random, kind: str, seconds: float) -> PlannedFault:
        start = rng.uniform(0.0, seconds * LAST_START)
        lasts = min(rng.choice(DURATIONS), seconds - start)
        return PlannedFault(kind, rng.choice(self._targets(kind)), start, lasts)

    # --- the run

    async def inject(self, faults: Sequence[PlannedFault]) -> None:
        """Begin and end each fault at its time from now. Raise ArgumentError for an unknown kind or target."""
        for fault in faults:
            self._check([fault.kind])
            if fault.target not in (known := self._targets(fault.kind)):
                raise ArgumentError(
                    f"{fault.kind} has no target {fault.target!r}; there are {', '.join(known)}."
                )
        began, loop = self.world.loop.time(), self.world.loop
        for fault in sorted(faults, key=lambda fault: fault.start):
            await asyncio.sleep(began + fault.start - loop.time())
            loop.trace("fault", str(fault))
            self.begun.append(attrs.evolve(fault, start=loop.time()))
            undo = KINDS[fault.kind](self, fault.target)
            if undo is not None:
                self._open.append(undo)
                loop.call_later(fault.seconds, self._end, undo, context=contextvars.Context())
        last = max((fault.start + fault.seconds for fault in faults), default=0.0)
        await asyncio.sleep(began + last - loop.time())

    async def heal(self) -> None:
        """End every fault: cuts and pauses end, brokers are up, members that were killed are started again."""
        while self._open:
            self._end(self._open[0])
        self.world.network.heal_all()
        await self.cluster.heal()
        for member in self.members.values():
            _start_again(member)

    def _end(self, undo: Undo) -> None:
        if undo in self._open:
            self._open.remove(undo)
            undo()

    # --- the network

    def connect(self, member: str) -> None:
        """Give the connections between a member and each broker settings of their own."""
        for broker in self.brokers():
            for way in ((member, broker), (broker, member)):
                self.world.network.wires.setdefault(way, Wire())

    def brokers(self) -> list[str]:
        """Return the names of the brokers' hosts."""
        return [broker.listeners[0].host for broker in self.cluster.state.brokers.values()]

    def wires(self, member: str) -> list[Wire]:
        """Return the settings of all connections of a member."""
        return [wire for way, wire in self.world.network.wires.items() if member in way]

    def cut(self, one: str, others: Sequence[str]) -> Undo:
        """Let nothing pass between a host and others."""
        network = self.world.network
        for other in others:
            network.cut_both(one, other)

        def heal() -> None:
            for other in others:
                network.heal(one, other)

        return heal


# --- the kinds


def kill_member(injector: FaultInjector, target: str) -> Undo | None:
    """See the table of the module, as for all that follow."""
    member = injector.members[target]
    member.kill()
    return lambda: _start_again(member)


def roll_member(injector: FaultInjector, target: str) -> Undo | None:
    member = injector.members[target]
    starts = member.starts
    member.terminate()
    # Started again even if it has returned, but not if something else did that meanwhile.
    return lambda: member.restart() if member.starts == starts else None


def pause_member(injector: FaultInjector, target: str) -> Undo | None:
    member = injector.members[target]
    member.pause()
    return member.resume


def cut_member(injector: FaultInjector, target: str) -> Undo | None:
    return injector.cut(target, injector.brokers())


def slow_member(injector: FaultInjector, target: str) -> Undo | None:
    def set_latency(seconds: float) -> None:
        for wire in injector.wires(target):
            wire.latency = seconds

    set_latency(SLOW_SECONDS)
    return lambda: set_latency(Wire().latency)


def reset_connections(injector: FaultInjector, target: str) -> Undo | None:
    for connection in injector.world.network.between(target):
        connection.reset()
    return None


def kill_broker(injector: FaultInjector, target: str) -> Undo | None:
    cluster, node = injector.cluster, int(target)
    cluster.kill(node)
    return lambda: None if cluster.state.brokers[node].running else cluster.restart(node)


def pause_broker(injector: FaultInjector, target: str) -> Undo | None:
    injector.cluster.pause(int(target))
    return lambda: injector.cluster.resume(int(target))


def cut_broker(injector: FaultInjector, target: str) -> Undo | None:
    broker = injector.cluster.state.brokers[int(target)].listeners[0].host
    return injector.cut(broker, sorted(injector.members))


def rebalance(injector: FaultInjector, target: str) -> Undo | None:
    injector.cluster.rebalance()
    return None


def _start_again(member: SimulatedMember) -> None:
    if not member.running and not member.exited:
        member.restart()


MEMBER_KINDS: Final[dict[str, Callable[[FaultInjector, str], Undo | None]]] = {
    "kill_member": kill_member,
    "roll_member": roll_member,
    "pause_member": pause_member,
    "cut_member": cut_member,
    "slow_member": slow_member,
    "reset_connections": reset_connections,
}
BROKER_KINDS: Final[dict[str, Callable[[FaultInjector, str], Undo | None]]] = {
    "kill_broker": kill_broker,
    "pause_broker": pause_broker,
    "cut_broker": cut_broker,
}
KINDS: Final[dict[str, Callable[[FaultInjector, str], Undo | None]]] = {
    **MEMBER_KINDS,
    **BROKER_KINDS,
    "rebalance": rebalance,
}

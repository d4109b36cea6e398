"""What goes wrong on the way between an application and a broker."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kclient.simulation.network import SimConnection
from kclient.simulation.pipe import Act, Trip
from tests.simulation.faults.kinds import End, amount, broker, kind, link, member
from tests.simulation.plan import Fault

if TYPE_CHECKING:
    from tests.simulation.stage import Stage


def change(stage: Stage, target: str, **settings: Any) -> End:
    """Set both directions of a link, and give back what sets them as they were."""
    one, other = target.split()
    wires = [stage.world.network.wire(one, other), stage.world.network.wire(other, one)]
    before = [{name: getattr(wire, name) for name in settings} for wire in wires]

    def put(values: list[dict[str, Any]]) -> None:
        for wire, own in zip(wires, values, strict=True):
            for name, value in own.items():
                setattr(wire, name, value)

    put([settings, settings])
    return lambda: put(before)


def connections(stage: Stage, fault: Fault) -> list[SimConnection]:
    """Those between the two ends that the fault names."""
    return list(stage.world.network.between(*fault.target.split()))


@kind("F-01", "F-03", target=link, amount=amount(0.05, 0.3, 1.0, 3.0))
def slow(stage: Stage, fault: Fault) -> End | None:
    """High latency, and as much jitter, so that what goes over two connections arrives in any order."""
    return change(stage, fault.target, latency=fault.amount, jitter=fault.amount)


@kind("F-02", target=link, amount=amount(500, 5_000, 100_000))
def narrow(stage: Stage, fault: Fault) -> End | None:
    """So many bytes a second."""
    return change(stage, fault.target, bandwidth=fault.amount)


@kind("F-04", target=link, amount=amount(0.3, 1.0))
def pieces(stage: Stage, fault: Fault) -> End | None:
    """Frames arrive in pieces, down to one byte, and stuck together."""
    return change(stage, fault.target, split=fault.amount, coalesce=0.5)


@kind("F-05", target=link)
def reset(stage: Stage, fault: Fault) -> End | None:
    """Every connection between the two is reset."""
    for connection in connections(stage, fault):
        connection.reset()
    return None


def trip(stage: Stage, fault: Fault, act: Act) -> End | None:
    """Let responses trip after so many more bytes."""
    for connection in connections(stage, fault):
        connection.backward.trip = Trip(act, int(fault.amount), fault.seconds)
    return None


@kind("F-06", target=link, amount=amount(1, 7, 100))
def finish_midway(stage: Stage, fault: Fault) -> End | None:
    """The broker's end is closed in the middle of a response."""
    return trip(stage, fault, Act.FIN)


@kind("F-07", target=link, amount=amount(1, 7, 100))
def reset_midway(stage: Stage, fault: Fault) -> End | None:
    """The connection is reset in the middle of a response."""
    return trip(stage, fault, Act.RST)


@kind("F-08", target=link, amount=amount(1, 7, 100))
def stall_midway(stage: Stage, fault: Fault) -> End | None:
    """A response stops in the middle, and goes on when the fault is over."""
    return trip(stage, fault, Act.STALL)


@kind("F-09", target=link, amount=amount(1, 7, 100))
def half_open(stage: Stage, fault: Fault) -> End | None:
    """Responses stop on the connections that are open now, without a reset."""
    return trip(stage, fault, Act.SILENCE)


@kind("F-10", target=link)
def part(stage: Stage, fault: Fault) -> End | None:
    """Nothing passes, in either direction."""
    ends = fault.target.split()
    stage.world.network.cut_both(*ends)
    return lambda: stage.world.network.heal(*ends)


@kind("F-11", target=link, amount=amount(0, 1))
def cut(stage: Stage, fault: Fault) -> End | None:
    """Nothing passes in one direction."""
    one, other = fault.target.split()
    stage.world.network.cut(*((one, other) if fault.amount else (other, one)))
    return lambda: stage.world.network.heal(one, other)


@kind("F-10", target=member)
def strand(stage: Stage, fault: Fault) -> End | None:
    """Nothing passes between the application and any broker."""
    network, brokers = stage.world.network, [f"broker-{node}" for node in stage.cluster.state.brokers]
    for name in brokers:
        network.cut_both(fault.target, name)
    return lambda: [network.heal(fault.target, name) for name in brokers] and None


def listed(names: set[str], name: str) -> End:
    """Put a name into a set for a while."""
    names.add(name)
    return lambda: names.discard(name)


@kind("F-13", target=broker)
def swallow(stage: Stage, fault: Fault) -> End | None:
    """Connections to the broker are neither made nor refused."""
    return listed(stage.world.network.swallowing, f"broker-{fault.target}")


@kind("F-14", target=broker)
def refuse(stage: Stage, fault: Fault) -> End | None:
    """Connections to the broker are refused; those that stand go on."""
    return listed(stage.world.network.refusing, f"broker-{fault.target}")


@kind("F-15", target=broker, amount=amount(socket.EAI_AGAIN, socket.EAI_NONAME))
def unresolvable(stage: Stage, fault: Fault) -> End | None:
    """The broker's name does not resolve."""
    errors, name = stage.world.network.lookup_errors, f"broker-{fault.target}"
    errors[name] = int(fault.amount)
    return lambda: errors.pop(name, None)


@kind("F-15", target=broker)
def wrong_address_first(stage: Stage, fault: Fault) -> End | None:
    """The broker's name resolves to a dead address first, and then to its own."""
    names, name = stage.world.network.names, f"broker-{fault.target}"
    names[name] = ["10.9.9.9", *names[name]]
    return lambda: names.__setitem__(name, [ip for ip in names[name] if ip != "10.9.9.9"])


@kind("F-15", "F-28", target=broker)
def change_address(stage: Stage, fault: Fault) -> End | None:
    """The broker's host has another address from now on, and its name resolves to that."""
    network, name = stage.world.network, f"broker-{fault.target}"
    host = network.by_name[name]
    new = f"10.1.{int(fault.target)}.{int(fault.start) + 1}"
    for old in host.addresses:
        network.hosts.pop(old, None)
    host.addresses = (new,)
    network.hosts[new], network.names[name] = host, [new]
    for connection in list(network.between(name)):
        connection.reset()
    return None


@kind("F-16", target=member)
def read_nothing(stage: Stage, fault: Fault) -> End | None:
    """The application's host takes nothing from its sockets for a while."""
    frozen = list(stage.world.network.between(fault.target))
    for connection in frozen:
        connection.client.freeze()
    return lambda: _each(frozen, lambda connection: connection.client.thaw())


@kind("F-17", target=broker)
def close_idle(stage: Stage, fault: Fault) -> End | None:
    """The broker closes its connections in good order, as it does with idle ones."""
    for connection in list(stage.cluster.state.brokers[int(fault.target)].connections):
        connection.kill(gently=True)
    return None


def _each(connections: list[SimConnection], what: Callable[[SimConnection], object]) -> None:
    for connection in connections:
        what(connection)

"""Scenario A-15: every broker gets another address, metadata is not answered, an address of a name is dead."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kclient.protocol.errors import REBOOTSTRAP_REQUIRED
from tests.scenarios.simulated import Place, simulate
from tests.scenarios.support import T0
from tests.simulation.support import PORT

NAME = "kafka"
BOOTSTRAP: dict[str, Any] = {"bootstrap_servers": f"{NAME}:{PORT}"}
NEW = "10.9.0.{}"


async def settle(place: Place) -> None:
    """The bootstrap name leads to the brokers, which call themselves by their addresses."""
    network = place.network
    for node in place.cluster.state.brokers:
        (address,) = network.by_name[f"broker-{node}"].addresses
        place.cluster.advertise(node, address, PORT)
    network.names[NAME] = [host.addresses[0] for host in brokers(place)]


def brokers(place: Place) -> list[Any]:
    return [place.network.by_name[f"broker-{node}"] for node in place.cluster.state.brokers]


async def move(place: Place, how: str) -> None:
    """Give every broker a new address; the old ones do not answer, or refuse connections."""
    for node in place.cluster.state.brokers:
        old = f"broker-{node}"
        await place.listen_also(f"fresh-{node}", node, NEW.format(node))
        place.cluster.advertise(node, NEW.format(node), PORT)
        if how == "refuse":
            place.network.refusing.add(old)
            for way in place.network.between("member", old):
                way.reset()
        else:
            place.network.cut_both("member", old)
    place.network.names[NAME] = [NEW.format(node) for node in place.cluster.state.brokers]


def dialled(place: Place, since: float) -> list[str]:
    return [dial.ip for dial in place.runtime.dials if dial.began >= since]


@pytest.mark.spec("A-15", "B.4.7", "B.5.9", "B.4.11", "U-09")
@pytest.mark.parametrize(
    ("how", "session_ms", "stays"),
    [("refuse", 45_000, True), ("swallow", 60_000, True), ("swallow", 6_000, False)],
)
def test_a15_the_bootstrap_list_leads_to_the_new_addresses(how: str, session_ms: int, stays: bool) -> None:
    """Positions are kept in any case, the place in the group where its session lasts so long."""

    async def scenario(place: Place) -> None:
        await settle(place)
        place.cluster.produce("t", ["0", "1"])
        settings = {"group_id": "g", "session_timeout_ms": session_ms, "heartbeat_interval_ms": 2_000}
        consumer = place.consumer("t", **BOOTSTRAP, **settings, request_timeout_ms=5_000)
        await place.read(consumer, 2)
        await place.on_member(consumer.commit())
        began = place.now
        await move(place, how)
        place.cluster.produce("t", ["2", "3"])
        assert [record.offset for record in await place.read(consumer, 2)] == [2, 3]
        assert place.now - began < (2 if how == "refuse" else 40)
        assert any(ip.startswith("10.9.") for ip in dialled(place, began))
        await place.on_member(consumer.commit())
        assert place.cluster.committed("g") == {T0: 4}
        lookups = place.asked("ListOffsets", began)
        rejoined = place.asked("JoinGroup", began)
        assert (rejoined == []) is stays
        assert lookups == []

    simulate(scenario, brokers=2, topics={"t": 1})


@pytest.mark.spec("A-15", "B.5.9", "D-13", "I-26")
@pytest.mark.parametrize("how", ["refuse", "swallow"])
def test_a15_with_none_the_old_nodes_are_tried_on(how: str) -> None:
    """Ever less often, and they are used again when they come back."""

    async def scenario(place: Place) -> None:
        await settle(place)
        place.cluster.produce("t", ["0"])
        consumer = place.consumer(**BOOTSTRAP, metadata_recovery_strategy="none", request_timeout_ms=5_000)
        await place.on_member(consumer.assign([T0]))
        await place.read(consumer, 1)
        began = place.now
        await move(place, how)
        place.cluster.produce("t", ["1"])
        await place.poll_until(consumer, lambda: place.now > began + 120)
        tried = dialled(place, began)
        old = [host.addresses[0] for host in brokers(place)]
        assert set(tried) == set(old)
        assert 4 <= len(tried) < 2 * 2 * 120  # a pause of a second at most for each of two nodes, on average
        assert NAME not in {name for at, name in place.runtime.looked_up if at >= began}
        place.network.heal_all()
        for node, address in enumerate(old, 1):
            place.cluster.advertise(node, address, PORT)
        assert [record.offset for record in await place.read(consumer, 1)] == [1]

    simulate(scenario, brokers=2, topics={"t": 1})


@pytest.mark.spec("A-15", "B.5.9")
@pytest.mark.parametrize("strategy", ["rebootstrap", "none"])
def test_a15_metadata_that_stays_away_makes_the_client_begin_again(strategy: str) -> None:
    """Although the brokers take its connections, and go on answering all else."""
    trigger = 30

    async def scenario(place: Place) -> None:
        await settle(place)
        place.cluster.produce("t", ["0"])
        settings = {"metadata_recovery_rebootstrap_trigger_ms": trigger * 1000, "request_timeout_ms": 5_000}
        settings |= {"metadata_max_age_ms": 10_000}
        consumer = place.consumer(**BOOTSTRAP, **settings, metadata_recovery_strategy=strategy)
        await place.on_member(consumer.assign([T0]))
        await place.read(consumer, 1)
        mute = place.cluster.drop("Metadata", times=None)
        await place.poll_until(consumer, lambda: len(place.asked("Metadata")) > 1)
        began = place.asked("Metadata")[1].at
        held: set[int] = set()
        while place.now < began + trigger - 1:
            held = place.links("broker-1")
            await place.on_member(consumer.poll(0.1))
        lookups = [at for at, name in place.runtime.looked_up if name == NAME]
        assert len(lookups) == 1
        await place.poll_until(consumer, lambda: place.now > began + trigger + 2)
        lookups = [at for at, name in place.runtime.looked_up if name == NAME]
        if strategy == "none":
            assert len(lookups) == 1
        else:
            assert lookups[1] - began == pytest.approx(trigger, abs=2)
            assert not held & place.links("broker-1")
        place.cluster.lift(mute)
        place.cluster.produce("t", ["1"])
        assert [record.offset for record in await place.read(consumer, 1)] == [1]

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("A-15", "B.5.9", "B.15.11")
def test_a15_a_broker_that_asks_for_it_is_obeyed_at_once() -> None:
    def refused(request: Any, response: Any) -> Any:
        response.error_code = REBOOTSTRAP_REQUIRED
        return response

    async def scenario(place: Place) -> None:
        await settle(place)
        place.cluster.produce("t", ["0"])
        consumer = place.consumer("t", **BOOTSTRAP, group_id="g", metadata_max_age_ms=10_000)
        await place.read(consumer, 1)
        before = place.links("broker-1")
        asked = len(place.asked("Metadata"))
        place.cluster.on("Metadata", refused, times=1)
        await place.poll_until(consumer, lambda: len(place.asked("Metadata")) > asked + 1)
        first, following = place.asked("Metadata")[asked : asked + 2]
        again = [at for at, name in place.runtime.looked_up if name == NAME and at > first.at]
        assert again[0] - first.at < 1
        assert following.at - first.at < 1
        assert not before & place.links("broker-1")
        place.cluster.produce("t", ["1"])
        assert [record.offset for record in await place.read(consumer, 1)] == [1]
        assert len(place.asked("JoinGroup")) == 2  # of the first join; its place in the group was kept
        assert len(place.asked("OffsetFetch")) == 1

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("A-15", "B.4.10", "B.4.11")
@pytest.mark.parametrize("strategy", ["rebootstrap", "none"])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a15_a_dead_address_after_a_name_costs_one_set_up_timeout(
    strategy: str, order: tuple[int, ...]
) -> None:
    async def scenario(place: Place) -> None:
        alive = [host.addresses[0] for host in brokers(place)]
        addresses = ["10.8.0.1", *alive]  # no broker has the first one
        place.network.names[NAME] = [addresses[number] for number in order]
        place.cluster.produce("t", ["0"])
        settings = {"socket_connection_setup_timeout_ms": 2_000, "metadata_recovery_strategy": strategy}
        consumer = place.consumer(**BOOTSTRAP, **settings)
        began = place.now
        await place.on_member(consumer.assign([T0]))
        await place.read(consumer, 1)
        assert place.now - began < 2.0 * 1.2 + 0.6
        dead = [dial for dial in place.runtime.dials if dial.ip == "10.8.0.1"]
        assert len(dead) == (1 if order[0] == 0 else 0)

    simulate(scenario, brokers=2, topics={"t": 1})


@pytest.mark.spec("A-15", "B.4.11")
def test_a15_a_lost_connection_is_recreated_to_another_address_of_the_name_first() -> None:
    async def scenario(place: Place) -> None:
        await place.listen_also("side-door", 1, "10.7.0.1")
        (front,) = brokers(place)[0].addresses
        place.network.names[NAME] = [front, "10.7.0.1"]
        place.cluster.advertise(1, NAME, PORT)
        place.cluster.produce("t", ["0"])
        consumer = place.consumer(**BOOTSTRAP)
        await place.on_member(consumer.assign([T0]))
        await place.read(consumer, 1)
        began = place.now
        for way in place.network.between("member", "broker-1"):
            way.reset()
        place.network.swallowing.add("broker-1")
        place.cluster.produce("t", ["1"])
        await place.read(consumer, 1)
        assert place.now - began < 1
        assert dialled(place, began)[0] == "10.7.0.1"

    simulate(scenario, topics={"t": 1})

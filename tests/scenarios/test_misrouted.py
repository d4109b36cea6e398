"""An address leads to another broker than in metadata: Kafka 4.4 reports it (KIP-1242), and the client rebootstraps."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.embedded.observer import LoggedRequest
from kclient.errors import ConnectError
from tests.scenarios.simulated import Place, simulate
from tests.scenarios.support import T0
from tests.simulation.support import PORT

NAME = "kafka"
BOOTSTRAP: dict[str, Any] = {"bootstrap_servers": f"{NAME}:{PORT}", "retry_backoff_ms": 100}
OPTIONS: dict[str, Any] = {"brokers": 2, "topics": {"t": 1}, "release": "4.4"}


def addresses(place: Place) -> dict[int, str]:
    """Where each node listens."""
    return {
        node: place.network.by_name[f"broker-{node}"].addresses[0] for node in place.cluster.state.brokers
    }


def advertise(place: Place, leads_to: dict[int, int]) -> None:
    """Advertise each node with the address of this one."""
    at = addresses(place)
    for node, other in leads_to.items():
        place.cluster.advertise(node, at[other], PORT)


async def reading(place: Place, **settings: Any) -> Any:
    """A consumer that has read one record, of a topic that node 1 leads."""
    advertise(place, {1: 1, 2: 2})
    place.network.names[NAME] = list(addresses(place).values())
    place.cluster.move_leader("t", 0, 1)
    place.cluster.produce("t", ["0"])
    consumer = place.consumer(**BOOTSTRAP, **settings)
    await place.on_member(consumer.assign([T0]))
    await place.read(consumer, 1)
    return consumer


def reset(place: Place) -> None:
    """End every connection."""
    for node in place.cluster.state.brokers:
        for way in place.network.between("member", f"broker-{node}"):
            way.reset()


def checks(place: Place, since: float = 0.0) -> list[LoggedRequest]:
    """The ApiVersions requests that name a node or a cluster."""
    asked = [one for one in place.asked("ApiVersions", since) if one.version >= 5]
    return [one for one in asked if (one.request.cluster_id, one.request.node_id) != (None, -1)]


def looked_up(place: Place, since: float) -> list[float]:
    return [at for at, name in place.runtime.looked_up if name == NAME and at >= since]


@pytest.mark.parametrize("strategy", ["rebootstrap", "none"])
@pytest.mark.parametrize("check", [True, False])
def test_every_connection_to_a_node_says_which_one_is_meant(strategy: str, check: bool) -> None:
    async def scenario(place: Place) -> None:
        await reading(place, metadata_recovery_strategy=strategy, metadata_cluster_check_enable=check)
        named = checks(place)
        assert bool(named) is (check and strategy == "rebootstrap")
        for one in named:
            assert (one.request.cluster_id, one.request.node_id) == (place.cluster.state.cluster_id, one.node)
        bootstrap = place.asked("ApiVersions")[0].request
        assert (bootstrap.cluster_id, bootstrap.node_id) == (None, -1)

    simulate(scenario, **OPTIONS)


@pytest.mark.parametrize("check", [True, False])
def test_nothing_is_asked_of_a_broker_that_another_was_taken_for(check: bool) -> None:
    """Both brokers are advertised with the address of the other one for two minutes."""

    async def scenario(place: Place) -> None:
        consumer = await reading(place, metadata_cluster_check_enable=check)
        began = place.now
        advertise(place, {1: 2, 2: 1})
        place.cluster.produce("t", ["1"])
        reset(place)
        found = await place.poll_until(consumer, lambda: place.now > began + 120)
        fetched = place.asked("Fetch", began, node=2)
        if check:
            assert (found, fetched) == ([], [])
            assert 10 < len(looked_up(place, began)) < 4 * 120
            assert len(place.asked("ApiVersions", began)) < 12 * 120
            advertise(place, {1: 1, 2: 2})
            assert [record.offset for record in await place.read(consumer, 1)] == [1]
            assert not any(one.node != 1 for one in place.asked("Fetch", began))
        else:
            assert fetched  # which node 2 refuses, for it does not lead the partition

    simulate(scenario, **OPTIONS)


def test_a_cluster_in_the_place_of_another_is_found_through_the_bootstrap_servers() -> None:
    async def scenario(place: Place) -> None:
        consumer = await reading(place)
        began = place.now
        place.cluster.state.cluster_id = "another"
        place.cluster.produce("t", ["1"])
        reset(place)
        assert [record.offset for record in await place.read(consumer, 1)] == [1]
        assert place.now - began < 2
        first, *_, last = checks(place, began)
        assert (first.request.cluster_id, last.request.cluster_id) != ("another", "another")
        assert last.request.cluster_id == "another"
        assert len(looked_up(place, began)) == 1

    simulate(scenario, **OPTIONS)


def test_a_start_tries_the_other_brokers() -> None:
    """One of three addresses leads to a wrong broker: no reason not to begin."""

    async def scenario(place: Place) -> None:
        advertise(place, {1: 1, 2: 1, 3: 3})
        place.network.names[NAME] = [addresses(place)[3]]
        place.cluster.move_leader("t", 0, 3)
        place.cluster.produce("t", ["0"])
        for number in range(4):
            consumer = place.consumer(**BOOTSTRAP, client_id=f"c{number}")
            await place.on_member(consumer.assign([T0]))
            assert len(await place.read(consumer, 1)) == 1

    simulate(scenario, **{**OPTIONS, "brokers": 3})


def test_a_start_that_finds_no_right_broker_says_so() -> None:
    async def scenario(place: Place) -> None:
        advertise(place, {1: 2, 2: 1})
        place.network.names[NAME] = list(addresses(place).values())
        consumer = place.consumer(**BOOTSTRAP)
        await place.on_member(consumer.assign([T0]))
        with pytest.raises(
            ConnectError, match=r"is not that node of cluster embedded-\w+ \(REBOOT"
        ) as caught:
            await place.on_member(consumer.poll(30.0))
        assert (caught.value.stage, caught.value.retriable) == ("misrouted", True)
        assert caught.value.node_id in (1, 2)
        advertise(place, {1: 1, 2: 2})
        place.cluster.produce("t", ["0"])
        assert len(await place.read(consumer, 1)) == 1

    simulate(scenario, **OPTIONS)

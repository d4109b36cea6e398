"""`bootstrap_resolve_timeout_ms` (KIP-909): how long the names of the bootstrap servers may take to exist."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kclient.errors import NameResolutionError
from kclient.runtime import Address
from tests.scenarios.simulated import Place, WatchedRuntime, simulate
from tests.scenarios.support import T0
from tests.simulation.support import PORT

SERVERS = f"kafka-a:{PORT},kafka-b:{PORT}"


def lookups(place: Place) -> list[tuple[float, str]]:
    return [(at, name) for at, name in place.runtime.looked_up if name.startswith("kafka-")]


@pytest.mark.spec("B.4.11")
def test_a_name_that_comes_late_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["0"])
        consumer = place.consumer(
            bootstrap_servers=SERVERS, bootstrap_resolve_timeout_ms=30_000, retry_backoff_ms=500
        )
        await place.on_member(consumer.assign([T0]))
        began = place.now
        assert (
            await place.poll_until(consumer, lambda: place.now >= began + 20) == []
        )  # polls keep their time
        tries = [at for at, name in lookups(place) if name == "kafka-a"]
        assert 38 <= len(tries) <= 41  # every half second, without growing pauses
        assert {name for _, name in lookups(place)} == {"kafka-a", "kafka-b"}
        place.network.names["kafka-b"] = list(place.network.by_name["broker-1"].addresses)
        assert len(await place.read(consumer, 1)) == 1
        assert place.now - began < 22

    with caplog.at_level(logging.WARNING, "kclient.connection"):
        simulate(scenario, topics={"t": 1})
    said = [record for record in caplog.records if "no bootstrap server resolves" in record.message]
    assert len(said) == 1


@pytest.mark.spec("B.4.11")
def test_a_name_that_does_not_come_in_time_ends_the_client() -> None:
    """A new client finds it later; this one does not look again."""

    async def scenario(place: Place) -> None:
        settings = {"bootstrap_servers": SERVERS, "bootstrap_resolve_timeout_ms": 10_000}
        consumer = place.consumer(**settings)
        await place.on_member(consumer.assign([T0]))
        began = place.now
        with pytest.raises(NameResolutionError, match=r"'kafka-a', 'kafka-b' resolved within 10 s") as caught:
            await place.poll_until(consumer, lambda: False)
        assert place.now - began == pytest.approx(10, abs=0.2)
        assert caught.value.retriable is False
        place.network.names["kafka-a"] = list(place.network.by_name["broker-1"].addresses)
        seen = len(lookups(place))
        with pytest.raises(NameResolutionError, match="open a new one"):
            await place.on_member(consumer.poll(5.0))
        with pytest.raises(NameResolutionError):
            await place.on_member(consumer.end_offsets([T0]))
        assert len(lookups(place)) == seen
        place.cluster.produce("t", ["0"])
        another = place.consumer(**settings)
        await place.on_member(another.assign([T0]))
        assert len(await place.read(another, 1)) == 1

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("B.4.11")
def test_a_resolver_that_hangs_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(*_: object) -> list[Address]:
        await asyncio.sleep(1e6)
        return []

    async def scenario(place: Place) -> None:
        consumer = place.consumer(bootstrap_servers=SERVERS, bootstrap_resolve_timeout_ms=3_000)
        await place.on_member(consumer.assign([T0]))
        began = place.now
        with pytest.raises(NameResolutionError, match="the resolver did not answer"):
            await place.on_member(consumer.poll(60.0))
        assert place.now - began == pytest.approx(3, abs=0.1)

    monkeypatch.setattr(WatchedRuntime, "resolve", hang)
    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("B.4.11")
def test_without_the_key_the_first_failure_is_reported_at_once_and_may_be_cured() -> None:
    async def scenario(place: Place) -> None:
        consumer = place.consumer(bootstrap_servers=SERVERS)
        await place.on_member(consumer.assign([T0]))
        began = place.now
        with pytest.raises(NameResolutionError) as caught:
            await place.on_member(consumer.poll(30.0))
        assert (place.now - began < 1, caught.value.retriable) == (True, True)
        place.network.names["kafka-a"] = list(place.network.by_name["broker-1"].addresses)
        place.cluster.produce("t", ["0"])
        assert len(await place.read(consumer, 1)) == 1

    simulate(scenario, topics={"t": 1})

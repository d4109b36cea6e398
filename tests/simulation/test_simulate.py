"""`kclient.simulation` for users: their processes, faults by seed, what was handled, and runs that do not end."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from queue import Queue
from types import SimpleNamespace
from typing import Any

import pytest

from kclient import AsyncConsumer, Consumer, handlers
from kclient.errors import ArgumentError, CommitFailedError, UsageError
from kclient.records.records import Record
from kclient.runtime import Runtime
from kclient.simulation import (
    HandledRecords,
    PlannedFault,
    Simulation,
    SimulationDeadlockError,
    SimulationForbiddenError,
    SimulationLivelockError,
    SimulationRunner,
    SimulationTimeoutError,
    simulate,
)
from kclient.simulation.faults import KINDS
from kclient.simulation.world import EPOCH
from kclient.types import TopicPartition
from tests.simulation.support import in_another_process

TOPICS = {"orders": 4}
SETTINGS: dict[str, Any] = {
    "group_id": "billing",
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "session_timeout_ms": 6_000,
}
Handle = Callable[[Record[Any, Any]], Awaitable[None]]


def consumer_of(simulation: Simulation) -> AsyncConsumer:
    return AsyncConsumer("orders", bootstrap_servers=simulation.bootstrap_servers, **SETTINGS)


async def commits_first(simulation: Simulation) -> None:
    """A member that commits what it has not handled yet."""
    async with consumer_of(simulation) as consumer:
        while True:
            records = await consumer.poll(1.0)
            await consumer.commit()
            for record in records:
                await asyncio.sleep(0.2)
                simulation.handled.add(record)


async def commits_after(simulation: Simulation) -> None:
    async with consumer_of(simulation) as consumer:
        while True:
            for record in await consumer.poll(1.0):
                await asyncio.sleep(0.2)
                simulation.handled.add(record)
            await consumer.commit()


async def runs_handlers(simulation: Simulation) -> None:
    async def handle(record: Record[Any, Any]) -> None:
        await asyncio.sleep(0.2)
        simulation.handled.add(record)

    async with consumer_of(simulation) as consumer:
        await handlers.run_async(consumer, handle)


def group_of(member: Callable[[Simulation], Any], **faults: Any) -> Callable[[Simulation], Awaitable[float]]:
    """Three members, records and faults for half a minute; then everything must have been handled."""

    async def scenario(simulation: Simulation) -> float:
        for number in range(3):
            simulation.start(f"member-{number}", member, simulation)
        plan = simulation.draw_faults(seconds=30, **faults)
        orders = [f"{number}" for number in range(100)]
        await asyncio.gather(simulation.produce("orders", orders, seconds=30), simulation.inject(plan))
        await simulation.heal()
        await simulation.all_handled("orders", seconds=60)
        return simulation.now

    return scenario


# --- what it is for


def test_some_seed_finds_the_records_that_are_committed_too_early() -> None:
    with pytest.raises(AssertionError, match=r"of 100 records were never handled: orders-\d@\d+") as caught:
        SimulationRunner()(group_of(commits_first), seeds=range(1, 21), topics=TOPICS)
    told = "\n".join(caught.value.__notes__)
    assert "faults and failures:" in told
    assert "_member member-" in told
    assert "repeat it with: pytest --kafka-seed=" in told


@pytest.mark.parametrize("member", [commits_after, runs_handlers])
def test_no_seed_finds_fault_with_a_member_that_commits_afterwards(member: Any) -> None:
    outcomes = SimulationRunner()(group_of(member), seeds=range(1, 9), topics=TOPICS)
    assert len({outcome.digest for outcome in outcomes}) == 8
    assert all(outcome.result > 29 for outcome in outcomes)


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_gets_over_each_fault(kind: str) -> None:
    async def scenario(simulation: Simulation) -> None:
        await group_of(runs_handlers, kinds=[kind], count=4)(simulation)
        assert all(
            broker.running and not broker.paused for broker in simulation.cluster.state.brokers.values()
        )
        assert all(member.running for member in simulation.members.values())
        assert simulation.report().count(f"  {kind}") == 4

    simulate(scenario, seed=3, topics=TOPICS)


PROGRAM = """
from kclient.simulation import simulate
from tests.simulation.test_simulate import TOPICS, group_of, runs_handlers
for seed in (1, 2, 1):
    print(simulate(group_of(runs_handlers), seed=seed, topics=TOPICS).digest)
"""


def test_a_seed_gives_the_same_run_in_every_process() -> None:
    here, there = in_another_process(PROGRAM, "1"), in_another_process(PROGRAM, "2")
    first, second, again = here.split()
    assert (first, here) == (again, there)
    assert second != first


# --- processes


def test_a_process_that_is_killed_does_nothing_more_and_starts_from_nothing() -> None:
    events: list[str] = []

    async def member() -> None:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                events.append(f"beat {beats}")
                await asyncio.sleep(1.0)

        try:
            await asyncio.gather(beat(), asyncio.sleep(100.0))
        finally:
            events.append("finally")

    async def scenario(simulation: Simulation) -> list[str]:
        process = simulation.start("m", member)
        await asyncio.sleep(1.5)
        process.kill()
        await asyncio.sleep(10.0)
        assert (process.running, process.exited, process.starts) == (False, False, 1)
        before = list(events)
        process.restart()
        await asyncio.sleep(0.5)
        return before

    assert simulate(scenario).result == ["beat 1", "beat 2"]
    assert events[:3] == ["beat 1", "beat 2", "beat 1"]


def test_the_connections_of_a_killed_process_are_reset() -> None:
    async def scenario(simulation: Simulation) -> None:
        member = simulation.start("m", commits_after, simulation)
        await simulation.until(lambda: simulation.cluster.state.brokers[1].connections)
        member.kill()
        await asyncio.sleep(1.0)
        assert not any(broker.connections for broker in simulation.cluster._brokers.values())

    simulate(scenario, topics=TOPICS, brokers=2)


def test_a_paused_process_goes_on_where_it_was() -> None:
    async def member(times: list[float]) -> None:
        while True:
            times.append(asyncio.get_running_loop().time())
            await asyncio.sleep(1.0)

    async def scenario(simulation: Simulation) -> list[float]:
        times: list[float] = []
        process = simulation.start("m", member, times)
        await asyncio.sleep(2.5)
        process.pause()
        await asyncio.sleep(10.0)
        process.resume()
        await asyncio.sleep(0.1)
        return times

    times = simulate(scenario).result
    assert [int(later - earlier) for earlier, later in pairwise(times)] == [1, 1, 10]


def test_sigterm_lets_running_handlers_finish() -> None:
    async def scenario(simulation: Simulation) -> None:
        member = simulation.start("m", runs_handlers, simulation)
        await simulation.produce("orders", ["one"])
        await simulation.until(lambda: simulation.cluster.state.topics["orders"].partitions[0].log.end)
        await asyncio.sleep(5.0)
        await simulation.produce("orders", ["two", "three"])
        member.terminate()
        await simulation.until(lambda: not member.running, seconds=30)
        assert member.exited
        counts = simulation.handled.counts("orders")
        committed = simulation.cluster.committed("billing")
        assert sum(committed.values()) == sum(counts.values()) > 0

    before = signal.getsignal(signal.SIGTERM)
    simulate(scenario, topics=TOPICS)
    assert signal.getsignal(signal.SIGTERM) is before


def test_sigterm_kills_a_process_without_a_handler() -> None:
    async def scenario(simulation: Simulation) -> tuple[bool, bool]:
        member = simulation.start("m", asyncio.sleep, 100.0)
        await asyncio.sleep(1.0)
        member.terminate()
        return member.running, member.exited

    assert simulate(scenario).result == (False, False)


def test_a_handler_of_the_loop_gets_sigterm() -> None:
    async def member() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await stop.wait()

    async def scenario(simulation: Simulation) -> bool:
        process = simulation.start("m", member)
        await asyncio.sleep(1.0)
        process.terminate()
        await simulation.until(lambda: not process.running)
        return process.exited

    assert simulate(scenario).result


def test_a_process_that_returns_ends_its_other_tasks_first() -> None:
    ended: list[str] = []

    async def other() -> None:
        try:
            await asyncio.sleep(100.0)
        finally:
            ended.append("other")

    async def member() -> None:
        _ = asyncio.create_task(other())  # noqa: RUF006 – its task is in the loop
        await asyncio.sleep(1.0)

    async def scenario(simulation: Simulation) -> list[str]:
        process = simulation.start("m", member)
        await simulation.until(lambda: process.exited)
        return list(ended)

    assert simulate(scenario).result == ["other"]


def test_a_process_that_fails_with_an_error_of_kafka_is_started_again() -> None:
    async def member(simulation: Simulation) -> None:
        if simulation.now < 5.0:
            raise CommitFailedError("the group has moved on")
        await asyncio.sleep(100.0)

    async def scenario(simulation: Simulation) -> tuple[int, int, str]:
        process = simulation.start("m", member, simulation)
        await asyncio.sleep(10.0)
        return process.starts, len(process.failures), simulation.report()

    starts, failures, report = simulate(scenario).result
    assert (starts, failures) == (6, 5)
    assert "m ended with CommitFailedError: the group has moved on" in report


def test_any_other_exception_of_a_process_ends_the_run() -> None:
    async def member() -> None:
        await asyncio.sleep(3.0)
        raise KeyError("amount")

    async def scenario(simulation: Simulation) -> None:
        simulation.start("m", member)
        await asyncio.sleep(1000.0)

    with pytest.raises(KeyError, match="amount") as caught:
        simulate(scenario)
    assert any(note.startswith("raised by m at 3.0") for note in caught.value.__notes__)


def test_which_exceptions_start_a_process_again_is_the_tests_choice() -> None:
    async def member() -> None:
        raise OSError("no database")

    async def scenario(simulation: Simulation) -> int:
        process = simulation.start("m", member, restart_on=(OSError,))
        await asyncio.sleep(2.5)
        return process.starts

    assert simulate(scenario).result == 3


# --- nothing is real


def test_clocks_are_virtual_for_what_the_users_code_makes_itself() -> None:
    async def member(seen: list[float]) -> None:
        await asyncio.sleep(3600.0)
        seen += [time.time(), Runtime().wall_clock()]

    async def scenario(simulation: Simulation) -> list[float]:
        seen: list[float] = []
        process = simulation.start("m", member, seen)
        await simulation.until(lambda: process.exited, seconds=None)
        return seen

    began = time.process_time()
    assert simulate(scenario, limit=7200.0).result == pytest.approx([EPOCH + 3600.0] * 2)
    assert time.process_time() - began < 10.0
    assert abs(Runtime().wall_clock() - time.time()) < 60


def test_other_threads_keep_the_real_clock() -> None:
    ask, answers = threading.Event(), Queue[float]()

    def answer() -> None:
        assert ask.wait(30.0)
        time.sleep(0.01)
        answers.put(time.time())

    async def scenario(simulation: Simulation) -> float:
        ask.set()
        return answers.get(timeout=30.0)

    thread = threading.Thread(target=answer)
    thread.start()
    there = simulate(scenario).result
    thread.join()
    assert abs(there - time.time()) < 300.0


def test_a_simulation_inside_of_a_running_loop_is_refused() -> None:
    async def scenario(simulation: Simulation) -> None: ...

    async def test() -> None:
        simulate(scenario)

    with pytest.raises(UsageError, match="plain function"):
        asyncio.run(test())


def test_plain_handlers_run_too() -> None:
    async def member(simulation: Simulation) -> None:
        async with consumer_of(simulation) as consumer:
            await handlers.run_async(consumer, simulation.handled.add)

    async def scenario(simulation: Simulation) -> None:
        simulation.start("m", member, simulation)
        await simulation.produce("orders", ["a", "b", "c"])
        await simulation.all_handled()

    simulate(scenario, topics=TOPICS)


def sleeps(simulation: Simulation) -> None:
    time.sleep(1.0)


def consumes_with_a_thread(simulation: Simulation) -> None:
    with Consumer("orders", bootstrap_servers=simulation.bootstrap_servers, **SETTINGS) as consumer:
        consumer.poll(1.0)


@pytest.mark.parametrize("blocks", [sleeps, consumes_with_a_thread])
def test_what_waits_for_the_real_world_is_refused(blocks: Callable[[Simulation], None]) -> None:
    async def member(simulation: Simulation) -> None:
        blocks(simulation)

    async def scenario(simulation: Simulation) -> None:
        simulation.start("m", member, simulation)
        await asyncio.sleep(10.0)

    with pytest.raises(SimulationForbiddenError, match="Use AsyncConsumer"):
        simulate(scenario)


# --- runs that do not end


async def waits_for_nothing() -> None:
    await asyncio.Event().wait()


def test_a_run_that_takes_too_long_says_where_its_tasks_are() -> None:
    async def scenario(simulation: Simulation) -> None:
        simulation.start("m", waits_for_nothing)
        await simulation.until(lambda: False, seconds=None)

    with pytest.raises(SimulationTimeoutError, match="not done within 30") as caught:
        simulate(scenario, limit=30.0)
    lines = [line for line in caught.value.tasks if line.startswith("m, start 1 on m (up)")]
    assert len(lines) == 1
    assert "waits_for_nothing (test_simulate.py:" in lines[0]


def test_a_run_in_which_nothing_can_happen_says_so() -> None:
    async def scenario(simulation: Simulation) -> None:
        simulation.cluster.state.clock.stop()
        await waits_for_nothing()

    with pytest.raises((SimulationDeadlockError, SimulationTimeoutError), match="waits_for_nothing"):
        simulate(scenario, limit=60.0)


def test_a_run_that_spins_says_so() -> None:
    async def scenario(simulation: Simulation) -> None:
        while simulation:  # noqa: ASYNC110 – it shall spin
            await asyncio.sleep(0)

    with pytest.raises(SimulationLivelockError, match="callbacks"):
        simulate(scenario)


def test_an_exception_that_nothing_awaits_fails_the_run() -> None:
    async def fail() -> None:
        raise RuntimeError("lost")

    async def scenario(simulation: Simulation) -> None:
        _ = asyncio.create_task(fail())  # noqa: RUF006 – nothing shall await it
        await asyncio.sleep(1.0)

    with pytest.raises(AssertionError, match=r"nothing awaited.*\n.*lost"):
        simulate(scenario)


# --- records


def test_counts_are_of_the_records_that_are_there() -> None:
    async def scenario(simulation: Simulation) -> None:
        await simulation.produce("orders", ["a", "b", "c", "d"], seconds=2.0)
        cluster, handled = simulation.cluster, simulation.handled
        assert handled.counts() == {("orders", 0, offset): 0 for offset in range(4)}
        simulation.start("m", commits_after, simulation)
        await simulation.all_handled()
        await asyncio.sleep(1.0)
        assert handled.counts("orders") == {("orders", 0, offset): 1 for offset in range(4)}
        assert (handled.missing(), handled.repeated()) == ([], [])
        simulation.members["m"].kill()
        await simulation.produce("orders", ["e", "f"])
        assert handled.missing() == [("orders", 0, 4), ("orders", 0, 5)]
        cluster.delete_records("orders", 0, 5)
        assert handled.missing() == [("orders", 0, 5)]
        cluster.truncate("orders", 0, 5)
        assert handled.missing() == []

    simulate(scenario, topics={"orders": 1})


def test_the_marker_of_a_transaction_is_no_record() -> None:
    handled = HandledRecords()
    partition = SimpleNamespace(tp=TopicPartition("orders", 0))
    for offset, is_control in ((0, False), (1, True)):
        batch = SimpleNamespace(base_offset=offset, next_offset=offset + 1, is_control=is_control)
        handled.appended(partition, batch)  # type: ignore[arg-type]
    assert handled.missing() == [("orders", 0, 0)]


def test_records_wait_for_a_leader() -> None:
    async def scenario(simulation: Simulation) -> int:
        simulation.cluster.kill(1)
        producing = asyncio.create_task(simulation.produce("orders", ["a"]))
        await asyncio.sleep(5.0)
        assert not producing.done()
        await simulation.heal()
        await producing
        return len(simulation.handled.missing())

    assert simulate(scenario, brokers=1, topics=TOPICS).result == 1


# --- faults


def test_faults_are_drawn_by_the_seed() -> None:
    async def scenario(simulation: Simulation) -> list[PlannedFault]:
        simulation.start("m", asyncio.sleep, 100.0)
        return simulation.draw_faults(seconds=20, count=30)

    plans = [simulate(scenario, seed=seed).result for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]
    assert all(fault.start >= 0 and fault.start + fault.seconds <= 20 for fault in plans[0])
    assert plans[0] == sorted(plans[0], key=lambda fault: fault.start)


def test_a_fault_begins_and_ends_when_it_says() -> None:
    async def scenario(simulation: Simulation) -> tuple[list[bool], float]:
        broker, up = simulation.cluster.state.brokers[2], []

        async def look() -> None:
            for _ in range(5):
                up.append(broker.running)
                await asyncio.sleep(1.0)

        looking = asyncio.create_task(look())
        await simulation.inject([PlannedFault("kill_broker", "2", 0.5, 2.0)])
        ended = simulation.now
        await looking
        return up, ended

    up, ended = simulate(scenario).result
    assert up == [True, False, False, True, True]
    assert ended == pytest.approx(2.5, abs=0.01)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (PlannedFault("kill_brokers", "2", 0.0, 1.0), "There is no fault 'kill_brokers'"),
        (PlannedFault("kill_broker", "9", 0.0, 1.0), "no target '9'; there are 1, 2, 3"),
        (PlannedFault("kill_member", "m", 0.0, 1.0), "needs a member"),
    ],
)
def test_a_fault_that_cannot_happen_is_refused(fault: PlannedFault, reason: str) -> None:
    async def scenario(simulation: Simulation) -> None:
        await simulation.inject([fault])

    with pytest.raises(ArgumentError, match=reason):
        simulate(scenario)


def test_arguments_that_make_no_sense_are_refused() -> None:
    async def scenario(simulation: Simulation) -> None:
        simulation.start("m", asyncio.sleep, 100.0)
        with pytest.raises(ArgumentError, match="'m' already"):
            simulation.start("m", asyncio.sleep, 100.0)
        with pytest.raises(ArgumentError, match="'broker-1' already"):
            simulation.start("broker-1", asyncio.sleep, 100.0)
        with pytest.raises(ArgumentError, match="Faults need time"):
            simulation.draw_faults(seconds=0)
        with pytest.raises(TimeoutError):
            await simulation.until(lambda: False, seconds=1.0)

    simulate(scenario)
    with pytest.raises(ArgumentError, match="seeds is empty"):
        SimulationRunner()(scenario, seeds=())
    with pytest.raises(ArgumentError, match=r"seeds=\[7\]"):
        SimulationRunner()(scenario, seeds=7)  # type: ignore[arg-type]

    async def starts_a_plain_function(simulation: Simulation) -> None:
        simulation.start("m", lambda: None)  # type: ignore[arg-type, return-value]
        await asyncio.sleep(1.0)

    with pytest.raises(ArgumentError, match="async def"):
        simulate(starts_a_plain_function)

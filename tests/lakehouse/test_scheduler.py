"""Blocking code on a virtual clock: one task at a time, killed and frozen where it is."""

from __future__ import annotations

import random
import threading

import pytest

from tests.lakehouse.scheduler import Scheduler


def told(seed: int = 1) -> tuple[Scheduler, list[str]]:
    return Scheduler(random.Random(seed)), []


def test_a_pause_takes_virtual_time_only() -> None:
    scheduler, said = told()

    def task() -> None:
        scheduler.pause(3600.0)
        said.append(f"{scheduler.now:g}")

    scheduler.spawn("task", task)
    scheduler.run(3599.0)
    assert said == []
    scheduler.run(4000.0)
    assert (said, scheduler.now) == (["3600"], 4000.0)


def interleaved(seed: int) -> list[str]:
    scheduler, said = told(seed)

    def task(name: str) -> None:
        for number in range(4):
            said.append(f"{name}{number}")
            scheduler.pause(1.0)

    for name in "abc":
        scheduler.spawn(name, lambda name=name: task(name))
    scheduler.run(10.0)
    return said


def test_the_seed_decides_the_order_of_what_is_ready_at_once() -> None:
    assert interleaved(1) == interleaved(1)
    assert len({tuple(interleaved(seed)) for seed in range(5)}) > 1
    assert sorted(interleaved(1)) == [f"{name}{number}" for name in "abc" for number in range(4)]


def test_a_killed_task_gets_no_further_and_cannot_clean_up() -> None:
    scheduler, said = told()

    def task() -> None:
        try:
            scheduler.pause(10.0)
            said.append("went on")
        finally:
            scheduler.pause(0.0)
            said.append("cleaned up")

    killed = scheduler.spawn("task", task)
    scheduler.at(5.0, lambda: scheduler.kill(killed))
    scheduler.run(20.0)
    assert (said, killed.over, killed.failure) == ([], True, None)


def test_a_task_can_be_killed_at_one_of_its_next_pauses() -> None:
    scheduler, said = told()

    def task() -> None:
        for number in range(9):
            said.append(str(number))
            scheduler.pause(1.0)

    scheduler.spawn("task", task).dies_in = 3
    scheduler.run(20.0)
    assert said == ["0", "1", "2", "3"]


def test_a_frozen_task_goes_on_later_while_others_run() -> None:
    scheduler, said = told()

    def task(name: str) -> None:
        scheduler.pause(2.0)
        said.append(f"{name} at {scheduler.now:g}")

    frozen = scheduler.spawn("frozen", lambda: task("frozen"))
    scheduler.spawn("other", lambda: task("other"))
    scheduler.at(1.0, lambda: scheduler.freeze(frozen, 100.0))
    scheduler.run(200.0)
    assert said == ["other at 2", "frozen at 100"]


def test_what_ends_a_task_is_kept_and_no_thread_stays() -> None:
    scheduler, _ = told()
    before = threading.active_count()
    failed = scheduler.spawn("failed", lambda: int("x") and None)
    scheduler.spawn("waits", lambda: scheduler.pause(1e9))
    scheduler.run(1.0)
    scheduler.close()
    assert isinstance(failed.failure, ValueError)
    for thread in threading.enumerate():
        if thread.name in ("failed", "waits"):
            thread.join(10.0)
    assert threading.active_count() <= before


def test_only_a_task_can_pause() -> None:
    scheduler, _ = told()
    with pytest.raises(RuntimeError, match="only a task"):
        scheduler.pause(1.0)

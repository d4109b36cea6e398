"""Short scripts for bugs of the facade: threads, sockets and time are real, so the seed decides nothing."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from kclient import Consumer
from kclient.embedded import EmbeddedCluster
from kclient.errors import KclientError
from tests.simulation.mutants.scripts import HERE, PATIENCE, RECORDS
from tests.simulation.mutants.table import Symptoms


def interrupted_call(seed: int) -> Symptoms:
    """What a call returns is its own, whatever was interrupted before. I-20."""
    with _reading() as (cluster, consumer):
        cluster.produce(HERE.topic, [b"one"])
        with _interrupt_after(0.3):
            try:
                consumer.poll(PATIENCE / 10)
                consumer.poll(PATIENCE / 10)
            except KeyboardInterrupt:
                pass
        try:
            ends = consumer.end_offsets([HERE])
        except KclientError as exc:
            return [("I-20", f"end_offsets raised what came of the poll before it: {exc}")]
        return [] if ends == {HERE: 1} else [("I-20", f"end_offsets returned {ends}")]


def interrupted_poll(seed: int) -> Symptoms:
    """The records of a poll that was interrupted as it returned come again. I-04."""
    with _reading() as (cluster, consumer):
        cluster.produce(HERE.topic, [b"%d" % number for number in range(RECORDS)])
        run_call = consumer._run

        def too_late(function: Any) -> Any:
            if run_call(function):
                raise KeyboardInterrupt
            return ()

        consumer._run = too_late  # type: ignore[method-assign]
        try:
            for _ in range(10):
                consumer.poll(1.0, max_records=5)
        except KeyboardInterrupt:
            pass
        consumer._run = run_call  # type: ignore[method-assign]
        first = next((record.offset for _ in range(10) for record in consumer.poll(1.0)), None)
        return [] if first == 0 else [("I-04", f"behind an interrupted poll comes {first}, and not 0")]


@contextmanager
def _reading() -> Iterator[tuple[EmbeddedCluster, Consumer]]:
    with EmbeddedCluster(topics={HERE.topic: 1}) as cluster:
        consumer = Consumer(bootstrap_servers=cluster.bootstrap_servers)
        consumer.assign([HERE])
        consumer.seek_to_beginning()
        try:
            yield cluster, consumer
        finally:
            with suppress(KclientError):  # what a bug left for it is none of the script's business
                consumer.close()


@contextmanager
def _interrupt_after(seconds: float) -> Iterator[None]:
    """A signal raises KeyboardInterrupt in the main thread."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)

"""Consumer with threads, forks, signals and callbacks. AsyncConsumer's tests cover the calls themselves."""

from __future__ import annotations

import copy
import gc
import inspect
import multiprocessing
import os
import pickle
import re
import signal
import threading
import time
from typing import Any

import pytest

from kclient import AsyncConsumer, Consumer, RebalanceListener, TopicPartition
from kclient.errors import (
    ArgumentError,
    ClosedError,
    ConcurrentUseError,
    ConfigError,
    UsageError,
    UsedAfterForkError,
    WakeupError,
)
from tests.consumer.interrupts import raise_at_random
from tests.consumer.mini_broker import FAST, MiniBroker

A0 = TopicPartition("a", 0)


def consumer(broker: MiniBroker, *topics: str, **settings: Any) -> Consumer:
    keys = {"bootstrap_servers": broker.address, "group_id": "g", "auto_offset_reset": "earliest"}
    return Consumer(*topics, **{**FAST, **keys, **settings})


def awaited(signature: inspect.Signature) -> inspect.Signature:
    """What a caller that awaits gets: a plain function that returns a coroutine is as good as `async def`."""
    returned = str(signature.return_annotation)
    returned = re.sub(r"^Coroutine\[Any, Any, (.*)\]$", r"\1", returned)
    return signature.replace(return_annotation=re.sub(r"^AsyncIterator\b", "Iterator", returned))


def public_calls(cls: type) -> dict[str, inspect.Signature]:
    return {
        name: awaited(inspect.signature(function))
        for name, function in inspect.getmembers(cls, inspect.isfunction)
        if not name.startswith("_")
    }


def test_both_consumers_have_the_same_calls_with_the_same_signatures() -> None:
    ours, theirs = public_calls(Consumer), public_calls(AsyncConsumer)
    assert ours == {name: signature for name, signature in theirs.items() if name != "check_process"}
    assert inspect.signature(Consumer.__init__) == inspect.signature(AsyncConsumer.__init__)


def test_every_public_call_says_what_it_does() -> None:
    for cls in (Consumer, AsyncConsumer):
        for name in public_calls(cls):
            assert getattr(cls, name).__doc__, f"{cls.__name__}.{name}"


def test_the_calls_of_both_consumers_have_the_same_docstrings() -> None:
    for name in public_calls(Consumer):
        assert getattr(Consumer, name).__doc__ == getattr(AsyncConsumer, name).__doc__, name


def test_the_readme_loop(broker: MiniBroker) -> None:
    with consumer(broker, "a") as c:
        values = []
        for record in c:
            values.append(record.value)
            if len(values) == 5:
                break
    assert values == [b"0", b"1", b"2", b"3", b"4"]
    assert broker.committed[A0].offset == 5
    assert len(broker.of("LeaveGroupRequest")) == 1


@pytest.mark.spec("D-78")
def test_a_second_loop_continues_after_the_record_that_ended_the_first(broker: MiniBroker) -> None:
    seen: list[int] = []
    with consumer(broker, "a") as c:
        for record in c:
            seen.append(record.offset)
            if record.offset == 1:
                break
        assert c.position(A0) == 2
        for record in c:
            seen.append(record.offset)
            break
        assert [record.offset for record in c.poll(5)] == [3, 4]
    assert seen == [0, 1, 2]
    assert broker.committed[A0].offset == 5


def test_a_handler_that_raises_leaves_its_record_uncommitted(broker: MiniBroker) -> None:
    """U-02."""
    with pytest.raises(ZeroDivisionError):
        _die_on_the_fourth(consumer(broker, "a"))
    assert broker.committed[A0].offset == 3


def _die_on_the_fourth(c: Consumer) -> None:
    with c:
        for record in c:
            if record.offset == 3:
                raise ZeroDivisionError


def test_all_consumers_share_one_thread_and_the_last_close_ends_it(broker: MiniBroker) -> None:
    def ours() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "kclient"]

    assert ours() == []
    first, second = consumer(broker, group_id=None), consumer(broker, group_id=None)
    assert ours() == []
    first.list_topics()
    (thread,) = ours()
    second.list_topics()
    assert ours() == [thread]
    first.close()
    assert ours() == [thread]
    second.close()
    assert ours() == []
    third = consumer(broker, group_id=None)
    assert list(third.list_topics()) == ["a"]
    third.close()


def test_user_code_runs_on_the_users_thread_and_may_call_the_consumer(broker: MiniBroker) -> None:
    ran: dict[str, tuple[str, Any]] = {}

    class Listener(RebalanceListener):
        def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
            ran["assigned"] = threading.current_thread().name, c.assignment()

        def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
            c.commit()
            ran["revoked"] = threading.current_thread().name, c.position(A0)

    def decode(topic: str, headers: Any, data: bytes) -> int:
        ran["decode"] = threading.current_thread().name, None
        return int(data)

    def committed(offsets: Any, error: Exception | None) -> None:
        ran["callback"] = threading.current_thread().name, c.committed([A0])[A0].offset

    def use() -> None:
        assert [record.value for record in c.poll(5)] == [0, 1, 2, 3, 4]
        c.commit_async(callback=committed)
        while "callback" not in ran:
            c.poll(0.05)
        c.close()

    c = consumer(broker, "a", listener=Listener(), value_deserializer=decode)
    thread = threading.Thread(target=use, name="the user's")
    thread.start()
    thread.join(20)
    name = "the user's"
    assert ran == {
        "assigned": (name, (A0,)),
        "decode": (name, None),
        "callback": (name, 5),
        "revoked": (name, 5),
    }


def test_heartbeats_continue_while_a_listener_blocks(broker: MiniBroker) -> None:
    """D-03, B.3.1."""

    class Slow(RebalanceListener):
        def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
            before = len(broker.of("HeartbeatRequest"))
            time.sleep(0.5)
            beats.append(len(broker.of("HeartbeatRequest")) - before)

    beats: list[int] = []
    with consumer(broker, "a", listener=Slow()) as c:
        c.poll(5)
    assert beats[0] >= 5


def test_a_listener_may_close_the_consumer(broker: MiniBroker) -> None:
    class Closing(RebalanceListener):
        def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
            c.close()

    c = consumer(broker, "a", listener=Closing())
    with pytest.raises(ClosedError):
        c.poll(5)
    assert len(broker.of("LeaveGroupRequest")) == 1


def test_coroutine_listeners_are_refused(broker: MiniBroker) -> None:
    class Wrong(RebalanceListener):
        async def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None: ...

    with pytest.raises(ConfigError, match="on_partitions_revoked"):
        consumer(broker, "a", listener=Wrong())
    with consumer(broker, "a") as c, pytest.raises(ConfigError, match="AsyncConsumer"):
        c.subscribe(["a"], listener=Wrong())


@pytest.mark.spec("S3-06", "S3-17")
def test_another_thread_is_refused_at_once_and_may_only_wake(broker: MiniBroker) -> None:
    c = consumer(broker, "a")
    c.poll(5)
    outcome: list[BaseException] = []

    def poll() -> None:
        try:
            c.poll(20)
        except WakeupError as exc:
            outcome.append(exc)

    thread = threading.Thread(target=poll, name="inside")
    thread.start()
    deadline = time.monotonic() + 10
    while "inside" not in str(c._inside) and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(ConcurrentUseError) as caught:
        c.assignment()
    assert (caught.value.inside, caught.value.caller) == ("inside", threading.current_thread().name)
    c.wakeup()
    thread.join(5)
    assert len(outcome) == 1
    assert c.assignment() == (A0,)
    c.close()


def test_an_interrupt_ends_the_wait_and_leaves_the_consumer_usable(broker: MiniBroker) -> None:
    """D-77."""
    with consumer(broker, "a") as c:
        assert len(c.poll(5, max_records=2)) == 2
        c.seek(A0, 5)
        threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            c.poll(20)
        assert time.monotonic() - started < 5
        c.seek(A0, 2)
        assert [record.offset for record in c.poll(5)] == [2, 3, 4]


def test_an_interrupt_in_a_deserializer_loses_no_record(broker: MiniBroker) -> None:
    """M-115."""
    interrupt = [b"3"]

    def decode(topic: str, headers: Any, data: bytes) -> int:
        if data in interrupt:
            interrupt.clear()
            raise KeyboardInterrupt
        return int(data)

    with consumer(broker, "a", value_deserializer=decode) as c:
        with pytest.raises(KeyboardInterrupt):
            c.poll(5)
        values: list[int] = []
        while len(values) < 5:
            values += [record.value for record in c.poll(5)]
        assert values == [0, 1, 2, 3, 4]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # one may hit a destructor
def test_interrupts_at_any_moment_of_a_loop_skip_and_repeat_nothing(broker: MiniBroker) -> None:
    """D-77: a signal every few milliseconds while 20,000 records are iterated."""
    broker.fill("a", 0, *(b"%d" % number for number in range(5, 20_000)))
    seen: list[int] = []
    with consumer(broker, "a") as c, raise_at_random(KeyboardInterrupt, 0.005) as interrupts:
        while not seen or seen[-1] != 19_999:
            try:
                interrupts.armed = True
                for record in c:
                    interrupts.armed = True  # again: a destructor may have swallowed the last one
                    seen.append(record.offset)
                    if record.offset == 19_999:
                        break
                interrupts.armed = False
            except KeyboardInterrupt:
                continue
    assert sorted(dict.fromkeys(seen)) == list(range(20_000))
    assert len(seen) - len(dict.fromkeys(seen)) <= interrupts.count
    assert interrupts.count > 0


def test_an_interrupt_while_the_loop_thread_starts_leaves_no_thread(
    broker: MiniBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-77: the call ends, the next one starts another thread, and the fixture finds none of the two."""
    start, interrupted = threading.Thread.start, threading.Event()

    def interrupt(thread: threading.Thread) -> None:
        start(thread)
        if thread.name == "kclient" and not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupt)
    with consumer(broker, "a") as c:
        with pytest.raises(KeyboardInterrupt):
            c.poll(5)
        assert [record.value for record in c.poll(5)] == [b"%d" % number for number in range(5)]


def _in_child(c: Consumer, results: Any) -> None:
    started = time.perf_counter()
    try:
        c.poll(0)
    except UsedAfterForkError as exc:
        results.put((type(exc).__name__, exc.created_pid, exc.pid, time.perf_counter() - started))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_fork_may_not_use_its_parents_consumer_nor_harm_it(broker: MiniBroker) -> None:
    """U-11, D-76."""
    with consumer(broker, "a") as c:
        assert len(c.poll(5, max_records=2)) == 2
        context = multiprocessing.get_context("fork")
        results = context.SimpleQueue()
        child = context.Process(target=_in_child, args=(c, results))
        child.start()
        child.join(10)
        name, created_pid, pid, seconds = results.get()
        assert (name, created_pid, pid) == ("UsedAfterForkError", os.getpid(), child.pid)
        assert seconds < 5  # it waits for nothing that only the parent's thread could do
        assert child.exitcode == 0
        broker.fill("a", 0, b"5")
        assert [record.offset for record in [*c.poll(5), *c.poll(1)]] == [2, 3, 4, 5]
        assert broker.generation == 1
        assert broker.of("LeaveGroupRequest") == []


def _consume_in_child(address: str, results: Any) -> None:
    with Consumer(bootstrap_servers=address, auto_offset_reset="earliest") as c:
        c.assign([A0])
        results.put(len(c.poll(5)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_fork_of_a_process_that_consumes_may_have_a_consumer_of_its_own(broker: MiniBroker) -> None:
    with consumer(broker, "a") as c:
        c.poll(5)
        context = multiprocessing.get_context("fork")
        results = context.SimpleQueue()
        child = context.Process(target=_consume_in_child, args=(broker.address, results))
        child.start()
        child.join(10)
        assert results.get() == 5


@pytest.mark.parametrize("cls", [Consumer, AsyncConsumer])
@pytest.mark.parametrize("send", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_consumer_is_not_sent_elsewhere_and_says_what_to_do_instead(cls: Any, send: Any) -> None:
    with pytest.raises(UsageError, match=r"neither pickled nor copied.*inside of the function that Spark"):
        send(cls(bootstrap_servers="nowhere:1"))


def test_a_consumer_that_is_forgotten_says_so(broker: MiniBroker) -> None:
    consumers = [consumer(broker, "a")]
    assert len(consumers[0].poll(5)) == 5
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "kclient"]
    with pytest.warns(ResourceWarning, match="not closed"):
        consumers.clear()
    thread.join(5)  # nothing goes on after it: no heartbeats, no fetches
    assert not thread.is_alive()


@pytest.mark.parametrize("given", ["with its topics", "with subscribe"])
def test_a_consumer_whose_listener_refers_to_it_can_be_forgotten_too(broker: MiniBroker, given: str) -> None:
    class CommitManager:
        """Without a slot for weak references, and without all three methods."""

        __slots__ = ("assignment", "consumer")

        def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
            self.assignment = self.consumer.assignment()

    def use() -> None:
        listener: Any = CommitManager()
        if given == "with subscribe":
            listener.consumer = consumer(broker)
            listener.consumer.subscribe(["a"], listener=listener)
        else:
            listener.consumer = consumer(broker, "a", listener=listener)
        assert len(listener.consumer.poll(5)) == 5
        assert listener.assignment == (A0,)

    use()
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "kclient"]
    with pytest.warns(ResourceWarning, match="not closed"):
        gc.collect()
    thread.join(5)
    assert not thread.is_alive()


def test_an_object_without_any_of_the_methods_is_no_listener(broker: MiniBroker) -> None:
    with pytest.raises(ArgumentError, match=r"1 is not a listener.*RebalanceListener"):
        consumer(broker, "a", listener=1)


class PartlyMisspelt(RebalanceListener):
    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None: ...

    def on_partition_assigned(self, partitions: tuple[TopicPartition, ...]) -> None: ...


class Confluent:
    def on_assign(self, consumer: object, partitions: object) -> None: ...


class CamelCase(RebalanceListener):
    def onPartitionsLost(self, partitions: tuple[TopicPartition, ...]) -> None: ...


@pytest.mark.parametrize(
    ("listener", "written", "meant"),
    [
        (PartlyMisspelt(), "on_partition_assigned", "on_partitions_assigned"),
        (Confluent(), "on_assign", "on_partitions_assigned"),
        (CamelCase(), "onPartitionsLost", "on_partitions_lost"),
    ],
)
def test_a_misspelt_callback_is_refused(listener: Any, written: str, meant: str, broker: MiniBroker) -> None:
    """It was once never called, silently."""
    with pytest.raises(ArgumentError, match=rf"method {written} of .* Did you mean {meant}\?"):
        consumer(broker, "a", listener=listener)
    with consumer(broker) as c, pytest.raises(ArgumentError, match=written):
        c.subscribe(["a"], listener=listener)


def test_a_helper_with_a_similar_name_is_no_misspelt_callback(broker: MiniBroker) -> None:
    class OneByOne(RebalanceListener):
        def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
            for partition in partitions:
                self.on_partition_assigned(partition)

        def on_partition_assigned(self, partition: TopicPartition) -> None:
            calls.append(partition)

    calls: list[TopicPartition] = []
    with consumer(broker, "a", listener=OneByOne()) as c:
        c.poll(5)
    assert calls == [A0]

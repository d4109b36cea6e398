"""The state of the cluster: plain objects that every broker reads and changes, apart from the APIs.

The brokers of a real cluster agree on this state through their controller; here they share it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import attrs

from kclient.change_signal import ChangeSignal
from kclient.embedded.auth import Acl, Users
from kclient.embedded.clock import Clock, Timer
from kclient.embedded.faults import Faults
from kclient.embedded.listener import Listener, Serve, serve
from kclient.embedded.oauth import OAuthValidator
from kclient.embedded.observer import Observer
from kclient.embedded.partition import Partition, Topic
from kclient.embedded.releases import Release
from kclient.embedded.settings import Settings
from kclient.runtime import Runtime
from kclient.types import TopicPartition

Local = TypeVar("Local")


@attrs.define(eq=False)
class ClusterState:
    """One cluster. `brokers` holds those that are down as well; `topics` is in the order of creation."""

    cluster_id: str
    release: Release
    settings: Settings
    runtime: Runtime
    clock: Clock
    serve: Serve = serve  # how a broker opens a port
    acl: Acl = attrs.field(factory=Acl)
    users: Users = attrs.field(factory=Users)
    oauth: OAuthValidator = attrs.field(factory=OAuthValidator)
    faults: Faults = attrs.field(factory=Faults)
    brokers: dict[int, BrokerState] = attrs.field(factory=dict)
    topics: dict[str, Topic] = attrs.field(factory=dict)
    observers: list[Observer] = attrs.field(factory=list)
    next_producer_id: int = 1000
    coordinator_load_seconds: float = 0.0  # how long a new coordinator loads its log
    coordinator_start_seconds: float = 0.0  # how long a coordinator of a new topic answers NOT_COORDINATOR
    zookeeper_offsets: dict[tuple[str, TopicPartition], int] = attrs.field(factory=dict)  # group → offset
    marker_delay: float = 0.0  # seconds between the end of a transaction and its markers
    connections: int = 0  # the number of connections so far
    bugs: list[BaseException] = attrs.field(factory=list)  # errors of handlers, edits and observers

    @property
    def controller_id(self) -> int:
        """The broker that changes topics: the first one that is up."""
        return next((broker.node_id for broker in self.alive()), -1)

    def alive(self) -> list[BrokerState]:
        """The brokers that are up, by id."""
        return [broker for broker in self.brokers.values() if broker.up]

    def topic_of_id(self, topic_id: bytes) -> Topic | None:
        """The topic with this id."""
        return next((topic for topic in self.topics.values() if topic.topic_id == topic_id), None)

    def partition(self, tp: TopicPartition) -> Partition | None:
        """Return a partition, or None."""
        topic = self.topics.get(tp.topic)
        if topic is None or not 0 <= tp.partition < len(topic.partitions):
            return None
        return topic.partitions[tp.partition]

    def partitions(self) -> list[Partition]:
        """All partitions of all topics."""
        return [partition for topic in self.topics.values() for partition in topic.partitions]

    def next_connection(self) -> int:
        """The number of a new connection, counted from 1."""
        self.connections += 1
        return self.connections

    def new_id(self) -> bytes:
        """Return a random uuid that is not reserved."""
        return self.runtime.random_bytes(15) + b"\x01"


class BrokerState:
    """One broker as the others and its requests see it; `broker.EmbeddedBroker` is its server.

    `running`: the process is there; `up`: the rest of the cluster counts on it.
    """

    def __init__(
        self, state: ClusterState, node_id: int, listeners: list[Listener], rack: str | None
    ) -> None:
        self.state = state
        self.node_id = node_id
        self.listeners = listeners
        self.rack = rack
        self.running: bool = False
        self.up = False
        self.paused: bool = False
        self.expiry: Timer | None = None  # when the other brokers notice that it is gone
        self.lost: list[Partition] = []  # the partitions that it led then
        self.resumed: Final = ChangeSignal()
        self.memory: dict[type, object] = {}  # `broker_local` objects, lost when the process ends
        self._timers: list[Timer] = []
        self._missed: list[Timer] = []

    def broker_local(self, kind: type[Local], make: Callable[[], Local]) -> Local:
        """Return the object of this type that is local to the running broker; `make` creates it on first use."""
        found = self.memory.get(kind)
        if not isinstance(found, kind):
            found = self.memory[kind] = make()
        return found

    def listener(self, name: str) -> Listener | None:
        """Return the listener of this name, or None."""
        return next((listener for listener in self.listeners if listener.name == name), None)

    def forget(self) -> None:
        """Drop all that a process loses when it ends: its objects and its timers."""
        self.running = self.paused = False
        for timer in self._timers:
            timer.cancel()
        self.memory.clear()
        self._timers.clear()
        self._missed.clear()

    def pause(self) -> None:
        """Stop handling requests and timers, as a stopped process does."""
        self.paused = True

    def resume(self) -> None:
        """Continue, first with the timers that were due meanwhile."""
        self.paused = False
        missed, self._missed = self._missed, []
        for timer in missed:
            if timer.callback is not None:  # not cancelled since it was due
                timer.callback()
        self.resumed.notify()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Set a timer of this broker: dropped when the broker is killed, delayed while it is paused."""
        self._timers = [timer for timer in self._timers if timer.callback is not None]
        timer = self.state.clock.call_later(seconds, lambda: self._ring(timer, callback))
        self._timers.append(timer)
        return timer

    def _ring(self, timer: Timer, callback: Callable[[], None]) -> None:
        if self.paused:
            self._missed.append(timer)
            return
        timer.cancel()
        try:
            callback()
        except Exception as exc:
            self.state.bugs.append(exc)  # raised when the cluster ends, as errors of requests are
            raise

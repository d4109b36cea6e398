"""The stage of one run: hosts, cluster, applications, ledger, and the violations that were seen.

chaos   the plan's faults come and go while records are published and read
heal    every fault ends, brokers and applications are up
quiet   until everything visible was read, and the liveness bounds are held or broken
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Final

from kclient.embedded import EmbeddedCluster
from kclient.embedded.fetch import RACK_AWARE
from kclient.embedded.listener import MECHANISMS, Factory, Listener
from kclient.embedded.partition import OFFSETS_TOPIC, Partition
from kclient.embedded.releases import Release
from kclient.group.offsets_topic import offsets_topic_partition
from kclient.simulation.network import Host
from kclient.simulation.pipe import Wire
from kclient.simulation.world import World
from kclient.types import TopicPartition
from tests.simulation.application import TOPIC, Member, rack_of
from tests.simulation.handling import HandlingMember
from tests.simulation.issuer import Issuer
from tests.simulation.iterating import IteratingMember
from tests.simulation.ledger import Ledger
from tests.simulation.manual import ManualMember, owner_of
from tests.simulation.plan import Plan
from tests.simulation.transactions import Transactions
from tests.simulation.watch import Invariant, Violation, Watch

PORT: Final = 9092
SASL_PORT: Final = 9192
CONFIG: Final = {
    "group.min.session.timeout.ms": 1_000,
    "connections.max.reauth.ms": 20_000,  # of a session, where clients authenticate
}
USER: Final = "reader"
WIRE_SETTINGS: Final = ("latency", "jitter", "bandwidth", "split", "coalesce")


class Stage:
    """See the module."""

    def __init__(self, world: World, plan: Plan, invariants: list[type[Invariant]]) -> None:
        self.world = world
        self.plan = plan
        self.scenario = plan.scenario
        self.quiet = False
        self.published = 0
        self.secret = f"canary-{Random(f'{world.seed}:secret').randbytes(9).hex()}"
        self.secrets = [self.secret]  # what must not be shown: the password, and tokens as they are issued
        self.issuer = Issuer(self)
        self.publisher_rng = Random(f"{world.seed}:publisher")
        self.violations: list[Violation] = []
        self.members: dict[str, Member] = {}  # the latest incarnation of each
        self.hosts: dict[str, Host] = {}
        self.guests: set[str] = set()  # who came with a fault, and goes with it
        self.open_faults: list[Callable[[], object]] = []
        self.watch = Watch(one(self) for one in invariants)
        self.transactions = Transactions(self)
        read_committed = self.scenario.isolation == "read_committed"
        self.ledger = Ledger(self.watch, lambda tp: owner_of(self, tp), read_committed=read_committed)
        for member in range(self.scenario.members):
            self.connect(f"member-{member + 1}")
        names = [f"broker-{number + 1}" for number in range(self.scenario.brokers)]
        self.bootstrap = ",".join(f"{name}:{PORT}" for name in names)
        self.cluster = EmbeddedCluster(
            self.scenario.brokers,
            release=self.scenario.release,
            addresses=[(name, PORT) for name in names],
            runtime=world.runtime("cluster"),
            racks=[rack_of(number) for number in range(self.scenario.brokers)]
            if self.scenario.racks
            else None,
            config=CONFIG
            | {
                "group.consumer.session.timeout.ms": self.scenario.session_timeout_ms,
                "group.consumer.heartbeat.interval.ms": self.scenario.heartbeat_interval_ms,
            }
            | ({"replica.selector.class": RACK_AWARE} if self.scenario.racks else {}),
            serve=self._serve,
            listeners=[Listener("SASL_PLAINTEXT", mechanisms=MECHANISMS)] if self.scenario.sasl else (),
            users={USER: self.secret} if self.scenario.sasl else None,
            oauth=self.issuer.validator,
        )
        if self.scenario.sasl:
            self._name_the_other_doors()
        self.group_max_size = self.cluster.state.settings.group_max_size

    def connect(self, name: str) -> None:
        """Give an application wires of its own to all brokers."""
        for broker in range(self.scenario.brokers):
            ends = name, f"broker-{broker + 1}"
            for way in (ends, ends[::-1]):
                wire = Wire(latency=self.scenario.latency, jitter=self.scenario.jitter)
                self.world.network.wires[way] = wire

    def _name_the_other_doors(self) -> None:
        """With SASL applications use the second listener of each broker, on the same host."""
        for broker in self.cluster.state.brokers.values():
            plain, guarded = broker.listeners
            guarded.host, guarded.port = plain.host, SASL_PORT
        self.bootstrap = self.bootstrap.replace(str(PORT), str(SASL_PORT))

    async def _serve(self, factory: Factory, listener: Listener) -> asyncio.Server:
        """The cluster runs on no host; each broker listens behind the address of one, so the network can cut it off."""
        known = self.world.network.by_name.get(listener.host)
        if known is None or not known.alive:
            self.world.host(listener.host)
        return await self.world.loop.create_server(factory, listener.host, listener.port, ssl=listener.ssl)

    def make_whole(self) -> None:
        """Set everything as it was at the start: of faults that overlap, each would bring back what it found."""
        network, state, scenario = self.world.network, self.cluster.state, self.scenario
        for wire in network.wires.values():
            fresh = Wire(latency=scenario.latency, jitter=scenario.jitter)
            for name in WIRE_SETTINGS:
                setattr(wire, name, getattr(fresh, name))
        for broker in state.brokers.values():
            name = broker.listeners[0].host
            network.names[name] = list(network.by_name[name].addresses)  # it may have moved for good
        state.release = Release.parse(scenario.release)
        self.issuer.recover()
        self.make_topic()
        state.settings.group_max_size = state.settings.group_consumer_max_size = self.group_max_size

    def make_topic(self) -> None:
        """Make the topic that is read, unless it is there, or no broker is there; no smaller than it was."""
        alive = len(self.cluster.state.alive())
        if TOPIC not in self.cluster.state.topics and alive:
            times = {"message.timestamp.type": "LogAppendTime"} if self.scenario.log_append_time else None
            count = max([self.scenario.partitions, *(tp.partition + 1 for tp in self.ledger.former_ends)])
            self.cluster.create_topic(TOPIC, count, min(3, alive), times)

    # --- questions of all parts

    @property
    def now(self) -> float:
        """Virtual seconds."""
        return self.world.loop.time()

    @property
    def timeouts(self) -> dict[str, int]:
        """Of members of a classic group."""
        scenario = self.scenario
        return {
            "session_timeout_ms": scenario.session_timeout_ms,
            "heartbeat_interval_ms": scenario.heartbeat_interval_ms,
        }

    def wall_ms(self) -> int:
        """The publisher's wall clock, which is right."""
        return self.cluster.state.clock.wall_ms()

    def report(self, violation: Violation) -> None:
        """A promise was broken."""
        self.violations.append(violation)
        self.world.loop.trace("violation", str(violation))

    def partitions(self) -> list[Partition]:
        """Those of the topic that is read."""
        topic = self.cluster.state.topics.get(TOPIC)
        return topic.partitions if topic is not None else []

    def writable(self, partition: Partition) -> bool:
        """Whether it has a leader."""
        broker = self.cluster.state.brokers.get(partition.leader)
        return broker is not None and broker.running

    def other_replicas(self, partition: Partition) -> list[int]:
        """Who could lead it instead: in sync, up, and not dead without anybody having noticed."""
        brokers = self.cluster.state.brokers
        others = [brokers[node] for node in partition.isr if node != partition.leader]
        return [broker.node_id for broker in others if broker.up and broker.running]

    def group_partition(self, group_id: str) -> Partition | None:
        """The partition that holds a group, if it was made already."""
        state = self.cluster.state
        number = offsets_topic_partition(group_id, state.settings.offsets_topic_num_partitions)
        return state.partition(TopicPartition(OFFSETS_TOPIC, number))

    def background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something on no host."""
        return self.world.loop.create_task(work)

    def speak(self, release: str) -> Callable[[], object]:
        """Let the brokers show another release, on new connections; give back what takes that back."""
        state, before = self.cluster.state, self.cluster.state.release

        def show(which: Release) -> None:
            state.release = which
            for broker in state.brokers.values():
                for connection in list(broker.connections):
                    connection.kill()

        show(min(before, Release.parse(release)))
        return lambda: show(before)

    # --- applications

    def start_member(self, name: str, instead: dict[str, Any] | None = None) -> None:
        """Start an application, or start it again after its host died, with what it was configured with before."""
        before = self.members.get(name)
        in_group = IteratingMember if self.scenario.iterates else Member
        in_group = HandlingMember if self.scenario.handles else in_group
        kind = ManualMember if self.scenario.manual else in_group
        incarnation = before.incarnation + 1 if before else 1
        member = kind(self, name, incarnation, before.instead if before and instead is None else instead)
        self.members[name] = member
        self.hosts[name] = self.world.host(name)
        self.hosts[name].start(member.live(), name=f"application {member}")

    def kill_member(self, name: str, *, silently: bool = False) -> None:
        """kill -9, seen by the network only; silently: not even by that."""
        member = self.members[name]
        if not member.over:
            member.over = True
            host = self.hosts[name]
            host.power_off() if silently else host.kill()
            self.watch.died(member)

    def start_guest(self, name: str, instead: dict[str, Any]) -> None:
        """Start an application that is not one of the group's usual ones, and is not started again."""
        self.guests.add(name)
        self.connect(name)
        self.start_member(name, instead)

    async def stop_members(self, limit: float) -> list[Member]:
        """Ask all to end cleanly; those that have not within `limit` seconds."""
        for member in self.members.values():
            member.stop()
        for _ in range(int(limit * 10)):
            if all(member.over for member in self.members.values()):
                break
            await asyncio.sleep(0.1)
        return [member for member in self.members.values() if not member.over]

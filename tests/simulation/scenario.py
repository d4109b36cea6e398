"""What a seed draws before anything happens: the topology, the group, how the applications behave.

A scenario is data. `draw` makes one from a random generator; `Scenario.from_json` reads what was written down with a
plan, so that a run can be repeated when the drawing has changed.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final, Self

import attrs

# What applications list before and after they are started again; the second is empty where it is the same.
LISTS: Final = (
    ("cooperative-sticky", ""),
    ("cooperative-sticky", ""),
    ("cooperative-sticky", ""),
    ("range", "cooperative-sticky,range"),
    ("cooperative-sticky,range", "cooperative-sticky"),
    ("cooperative-sticky", "cooperative-sticky,range"),
    ("sticky", ""),
    ("sticky,roundrobin", "roundrobin"),
    ("range,roundrobin", ""),
    ("range", "roundrobin,range"),
    ("gradual", ""),
)
# The same for protocols.
PROTOCOLS: Final = (
    ("consumer", ""),
    ("consumer", ""),
    ("consumer", ""),
    ("consumer", ""),
    ("classic", "consumer"),
    ("consumer", "classic"),
    ("auto", ""),
)
PROTOCOLS_SHARE: Final = 0.4  # of the releases that know more than one
LISTS_SHARE: Final = 0.45
MANNERS_SHARE: Final = 0.06
TOKENS_SHARE: Final = 0.1  # of the releases that renew sessions
ENDINGS_SHARE: Final = 0.15
NEWEST_SHARE: Final = 0.3  # of the seeds whose release is 4.3: they get 4.4


@attrs.frozen(kw_only=True)
class Scenario:
    """Everything about a run that is no fault. Times in seconds unless they say ms."""

    brokers: int = 3
    members: int = 3
    partitions: int = 6
    release: str = "4.3"
    chaos_seconds: float = 60.0
    assignor: str = "range"  # several are parted by commas, the best liked first
    commit: str = "auto"  # auto, sync, async, on_revoke
    static: bool = False
    iterates: bool = False  # applications iterate instead of polling; not drawn
    handles: bool = False  # applications run handlers (kclient.handlers) instead of polling; not drawn
    isolation: str = "read_uncommitted"
    reset: str = "earliest"  # auto_offset_reset
    transactions: bool = False
    sasl: str = ""  # the mechanism, if clients authenticate
    token_seconds: float = 20.0  # for OAUTHBEARER
    verbose: bool = False  # clients log at DEBUG
    log_append_time: bool = False  # brokers set the time of records
    compression: int = 0
    records_per_second: float = 20.0
    record_bytes: int = 60
    process_seconds: float = 0.0  # how long an application works on what a poll returned
    poll_timeout: float = 1.0
    max_poll_records: int = 100
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 30_000
    request_timeout_ms: int = 5_000
    fetch_max_bytes: int = 52_428_800
    max_partition_fetch_bytes: int = 1_048_576
    buffer_memory_bytes: int = 67_108_864
    metadata_max_age_ms: int = 30_000
    latency: float = 0.002
    jitter: float = 0.002
    fidgety: bool = False  # the applications seek, pause and resubscribe at random (F-49)
    odds: float = 0.0  # of each rare thing that the client lets happen, `Runtime.buggify`
    manual: bool = False  # no group: each application assigns its share itself
    some_dynamic: bool = False  # every second member is not static
    later_assignor: str = ""  # of a process that was started again, if that is another one
    protocol: str = "classic"  # group_protocol
    later_protocol: str = ""  # the same for protocols
    remote_assignor: str = ""  # what members of the consumer protocol ask for
    pattern: bool = False  # they subscribe to a pattern
    endings: bool = False  # applications are woken while they close, and die in handlers (endings.py)
    error_pause: float = (
        0.0  # applications log an error, wait so long, and poll again, at times without a cure
    )
    commits_first: bool = False  # they commit for new partitions before anything of these is polled
    racks: bool = False  # brokers and clients are in racks, and followers serve those of theirs (KIP-392)

    def to_json(self) -> dict[str, Any]:
        """Only what differs from the defaults."""
        usual = attrs.asdict(Scenario())
        return {name: value for name, value in attrs.asdict(self).items() if value != usual[name]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """What `to_json` wrote."""
        return cls(**data)

    def __str__(self) -> str:
        return json.dumps(self.to_json())


def draw(rng: Random) -> Scenario:
    """A scenario of this seed's own; small numbers are likelier, because they show more in less time."""
    plain = _draw_plain(rng)
    rare = attrs.evolve(plain, **_draw_rare(Random(str(plain)), plain))
    rare = attrs.evolve(rare, endings=Random(f"{plain} ways out").random() < ENDINGS_SHARE)
    rare = attrs.evolve(rare, **_draw_manners(Random(f"{plain} manners")))
    rare = attrs.evolve(rare, **_draw_login(Random(f"{plain} short identity"), rare))
    drawn = rare if rare.manual else attrs.evolve(rare, **_draw_group(Random(f"{plain} group"), rare))
    newest = drawn.release == "4.3" and Random(f"{plain} 4.4").random() < NEWEST_SHARE
    return attrs.evolve(drawn, release="4.4") if newest else drawn


def _draw_manners(rng: Random) -> dict[str, Any]:
    """What applications do about errors and first positions. From a generator of its own, as the rare things."""
    pause = rng.choice((1.0, 3.0)) if rng.random() < MANNERS_SHARE else 0.0
    return {"error_pause": pause, "commits_first": rng.random() < MANNERS_SHARE}


def _draw_login(rng: Random, rare: Scenario) -> dict[str, Any]:
    """Tokens instead of passwords, or of nothing. From a generator of its own, as the rare things."""
    if rare.release == "1.1" or rng.random() >= TOKENS_SHARE:
        return {}
    return {"sasl": "OAUTHBEARER", "token_seconds": rng.choice((10.0, 20.0, 30.0))}


def _draw_group(rng: Random, rare: Scenario) -> dict[str, Any]:
    """What kind of group it is, where that is not the plain one. From a generator of its own, as the rare things."""
    drawn: dict[str, Any] = {}
    if rare.static:
        drawn["some_dynamic"] = rng.random() < 0.3
    if rng.random() < LISTS_SHARE:
        drawn["assignor"], drawn["later_assignor"] = rng.choice(LISTS)
    drawn["pattern"] = rng.random() < 0.1
    if rare.release in ("4.3", "4.0") and rng.random() < PROTOCOLS_SHARE:
        drawn["protocol"], drawn["later_protocol"] = rng.choice(PROTOCOLS)
        drawn["remote_assignor"] = rng.choice(("", "uniform", "range"))
    elif rng.random() < 0.05:
        drawn["protocol"] = "auto"
    return drawn


def _draw_rare(rng: Random, plain: Scenario) -> dict[str, Any]:
    """What few seeds have. Drawn from a generator of its own: the others stay what they were without it."""
    rare: dict[str, Any] = {}
    if plain.brokers > 1 and plain.release not in ("1.1", "2.3"):
        rare["racks"] = rng.random() < 0.2
    if plain.reset == "latest":
        rare["reset"] = rng.choice(("latest", "none", "by_duration:PT1H", "by_duration:PT10S"))
    if rng.random() < 0.25:
        rare["odds"] = rng.choice((0.01, 0.03, 0.1))
    if not plain.static and plain.commit != "on_revoke":
        rare["manual"] = rng.random() < 0.15
    return rare


def _draw_plain(rng: Random) -> Scenario:
    brokers = rng.choice((1, 2, 3, 3, 3, 4, 5))
    session = rng.choice((6_000, 10_000, 10_000, 20_000))
    release = rng.choice(("4.3", "4.3", "4.3", "4.0", "3.9", "3.4", "2.8", "2.3", "1.1"))
    return Scenario(
        brokers=brokers,
        members=rng.choice((1, 2, 2, 3, 3, 4, 5, 8)),
        partitions=rng.choice((1, 2, 3, 4, 6, 6, 12, 24, 64)),
        release=release,
        chaos_seconds=rng.uniform(60.0, 90.0),
        assignor=rng.choice(("range", "roundrobin")),
        commit=rng.choice(("auto", "auto", "sync", "async", "on_revoke")),
        static=rng.random() < 0.2 and release != "1.1",  # KIP-345 came with 2.3
        isolation=rng.choice(("read_uncommitted", "read_committed")),
        reset=rng.choice(("earliest", "earliest", "earliest", "latest")),
        transactions=rng.random() < 0.4,
        compression=rng.choice((0, 0, 1, 2, 3, 4)),
        records_per_second=rng.choice((2.0, 10.0, 20.0, 40.0)),
        record_bytes=rng.choice((20, 60, 60, 2_000)),
        process_seconds=rng.choice((0.0, 0.0, 0.01, 0.5)),
        poll_timeout=rng.choice((0.0, 0.1, 1.0, 1.0, 20.0)),
        max_poll_records=rng.choice((1, 10, 100, 500)),
        session_timeout_ms=session,
        heartbeat_interval_ms=rng.choice((1_000, session // 3)),
        max_poll_interval_ms=rng.choice((15_000, 30_000, 60_000)),
        request_timeout_ms=rng.choice((3_000, 5_000, 10_000)),
        fetch_max_bytes=rng.choice((10_000, 1_000_000, 52_428_800)),
        max_partition_fetch_bytes=rng.choice((1_000, 100_000, 1_048_576)),
        buffer_memory_bytes=rng.choice((20_000, 1_000_000, 67_108_864)),
        metadata_max_age_ms=rng.choice((5_000, 30_000, 300_000)),
        latency=rng.choice((0.0005, 0.002, 0.02, 0.1)),
        jitter=rng.choice((0.0, 0.002, 0.05)),
        fidgety=rng.random() < 0.3,
        log_append_time=rng.random() < 0.2,
        sasl=rng.choice(("", "", "", "PLAIN", "SCRAM-SHA-256")),
        verbose=rng.random() < 0.05,
    )

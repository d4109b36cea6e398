"""Plans for bugs that few drawn seeds can show: each brings about what the bug needs, and is clean without it."""

from __future__ import annotations

from typing import Final

import attrs

from tests.simulation.mutants.table import Look, Symptoms
from tests.simulation.plan import Fault, Plan
from tests.simulation.runner import run_plan
from tests.simulation.scenario import Scenario


def looking_at(plan: Plan) -> Look:
    """Run a plan under a seed, and say what is wrong."""

    def look(seed: int) -> Symptoms:
        return [(violation.invariant, str(violation)) for violation in run_plan(seed, plan).violations]

    return look


SLOW_COMMITS: Final = Plan(
    Scenario(assignor="cooperative-sticky", records_per_second=40.0),
    (
        Fault("answer_late", "OffsetCommit", 5.0, 50.0, 1_000.0),
        Fault("close", "member-2", 20.0, 5.0),
        Fault("close", "member-3", 40.0, 5.0),
    ),
)
NO_ANSWERS: Final = Plan(
    Scenario(members=2, records_per_second=20.0),
    (
        Fault("cut_answer", "OffsetFetch", 15.0, 30.0, 3.0),
        Fault("close", "member-2", 18.0, 5.0),
        Fault("close", "member-1", 34.0, 5.0),
    ),
)
LOST_SESSIONS: Final = Plan(
    Scenario(members=1, partitions=4, records_per_second=20.0),
    tuple(Fault("evict_sessions", str(node), 15.0 + 5.0 * node, 1.0) for node in (1, 2, 3)),
)
# One record a poll and small chunks from far away: a partition that is put in front again keeps the others waiting.
ONE_BY_ONE: Final = Plan(
    Scenario(
        members=2,
        partitions=24,
        chaos_seconds=67.63607721151813,
        assignor="roundrobin",
        commit="async",
        isolation="read_committed",
        sasl="SCRAM-SHA-256",
        compression=4,
        records_per_second=40.0,
        record_bytes=20,
        process_seconds=0.5,
        poll_timeout=0.0,
        max_poll_records=1,
        session_timeout_ms=20_000,
        heartbeat_interval_ms=1_000,
        max_poll_interval_ms=15_000,
        metadata_max_age_ms=5_000,
        latency=0.1,
        jitter=0.05,
        fidgety=True,
    ),
    (
        Fault("close", "member-1", 17.308333374663217, 2.0),
        Fault("unresolvable", "2", 21.32736457792977, 12.0, -2),
        Fault("unresolvable", "1", 24.200455490358138, 0.5, -3),
        Fault("answer_unasked", "Fetch", 34.05137599725528, 12.5),
    ),
)
NOBODY_THERE: Final = Plan(
    Scenario(members=2),
    (
        *(Fault("wrong_address_first", str(node), 19.0, 30.0) for node in (1, 2, 3)),
        Fault("close", "member-1", 20.0, 5.0),
    ),
)
TOO_SLOW: Final = Plan(
    Scenario(protocol="consumer", members=2, partitions=4, max_poll_interval_ms=15_000),
    (Fault("work_slowly", "member-1", 20.0, 1.0, 20.0), Fault("work_slowly", "member-2", 40.0, 1.0, 20.0)),
)
SLOW_LISTENERS: Final = Plan(
    Scenario(protocol="consumer", heartbeat_interval_ms=1_000),
    (
        Fault("close", "member-2", 10.0, 8.0),
        Fault("rebel", "member-1", 16.0, 1.0, 1.0),
        Fault("rebel", "member-3", 16.0, 1.0, 1.0),
        Fault("close", "member-1", 40.0, 8.0),
        Fault("rebel", "member-2", 46.0, 1.0, 1.0),
        Fault("rebel", "member-3", 46.0, 1.0, 1.0),
    ),
)
FENCED: Final = Plan(
    Scenario(protocol="consumer"),
    (
        Fault("heartbeat_error", "ConsumerGroupHeartbeat FENCED_MEMBER_EPOCH", 20.0, 10.0, 1),
        Fault("pause_member", "member-1", 40.0, 15.0),
    ),
)
STALE: Final = Plan(
    Scenario(protocol="consumer", release="4.0", commit="sync", heartbeat_interval_ms=1_000),
    (
        Fault("close", "member-2", 15.0, 5.0),
        Fault("heartbeat_error", "OffsetCommit STALE_MEMBER_EPOCH", 20.0, 10.0, 1_000_000),
        Fault("close", "member-3", 35.0, 5.0),
    ),
)
# Two applications that die in their handlers, or are woken while they end: one after the other, and again and again.
DYING: Final = Plan(
    Scenario(endings=True, members=2, max_poll_records=10, process_seconds=0.01, records_per_second=40.0),
    tuple(Fault("close", f"member-{1 + number % 2}", 12.0 + 5.0 * number, 3.0) for number in range(8)),
)
RESTLESS: Final = Plan(
    Scenario(endings=True, fidgety=True, commit="on_revoke", poll_timeout=0.1, records_per_second=40.0),
    (Fault("close", "member-1", 20.0, 3.0), Fault("close", "member-2", 30.0, 3.0)),
)
# Members end and begin again, so that partitions go from one to another and back.
TURNS: Final = Plan(
    Scenario(), (Fault("close", "member-2", 20.0, 5.0), Fault("close", "member-3", 40.0, 5.0))
)
GRADUAL_TURNS: Final = Plan(Scenario(assignor="cooperative-sticky"), TURNS.faults)
# The coordinator moves while members have joined and wait for one that is slow.
MOVED_MEANWHILE: Final = Plan(
    Scenario(),
    (
        Fault("work_slowly", "member-1", 16.0, 1.0, 20.0),
        Fault("close", "member-2", 20.0, 3.0),
        Fault("move_coordinator", "", 27.0, 5.0),
    ),
)
NO_BROKERS: Final = Plan(
    Scenario(members=2), (Fault("all_down", "", 20.0, 40.0), Fault("close", "member-1", 25.0, 5.0))
)
# An endpoint that is out of order while the renewal is due, and connections that are made again meanwhile.
LONG_TOKENS: Final = Scenario(
    sasl="OAUTHBEARER",
    token_seconds=40.0,
    members=2,
    partitions=3,
    records_per_second=5.0,
    request_timeout_ms=3_000,
)


def reconnecting(start: float) -> tuple[Fault, ...]:
    """Both members must make all their connections again."""
    links = (f"member-{member} broker-{broker}" for member in (1, 2) for broker in (1, 2, 3))
    return tuple(Fault("reset", link, start, 0.0) for link in links)


FAILING_TOKENS: Final = Plan(LONG_TOKENS, (Fault("fail_tokens", "", 31.0, 4.0, 1), *reconnecting(34.2)))
HANGING_TOKENS: Final = Plan(LONG_TOKENS, (Fault("hang_tokens", "", 31.0, 3.4), *reconnecting(34.2)))
# The same until the token has expired; in the second one, connections come back after that.
NO_TOKENS: Final = Plan(
    attrs.evolve(LONG_TOKENS, token_seconds=16.0),
    (Fault("hang_tokens", "", 12.0, 16.0), Fault("fail_tokens", "", 42.0, 16.0, 0)),
)
EXPIRED_TOKENS: Final = Plan(
    LONG_TOKENS,
    (
        Fault("fail_tokens", "", 31.0, 14.0, 0),
        *(Fault("refuse", str(broker), 37.5, 4.0) for broker in (1, 2, 3)),
        *reconnecting(37.6),
    ),
)
REFUSED_TOKENS: Final = Plan(LONG_TOKENS, (Fault("revoke_tokens", "", 10.0, 0.0), *reconnecting(12.0)))
BY_PATTERN: Final = Plan(Scenario(protocol="consumer", pattern=True, members=2))
CALM: Final = Plan(Scenario(protocol="consumer", members=2))
CALM_TOKENS: Final = Plan(Scenario(sasl="OAUTHBEARER", token_seconds=60.0, members=2))

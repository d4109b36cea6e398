"""Responses that do not fit their request: entries twice, entries that were not requested, updates without names."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, Any, Final

import attrs

from kclient.protocol.message import Message
from tests.simulation.application import TOPIC
from tests.simulation.faults.answers import leaders_of_now
from tests.simulation.faults.brokers import move_leader
from tests.simulation.faults.kinds import End, amount, broker, kind, partition, several_brokers
from tests.simulation.plan import Fault
from tests.simulation.scenario import Scenario

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

LISTING: Final = ("Fetch", "ListOffsets", "OffsetCommit", "OffsetFetch", "OffsetForLeaderEpoch", "Metadata")
UNHEARD_OF: Final = 12_345  # the number of a partition


def listing(rng: Random, scenario: Scenario) -> str:
    """The name of an API whose responses list partitions."""
    return rng.choice(LISTING)


def lists_of_partitions(holder: Any) -> Iterator[list[Any]]:
    """The innermost lists of a response whose entries are partitions."""
    for field in attrs.fields(type(holder)):
        value = getattr(holder, field.name)
        if not isinstance(value, list) or not value or not attrs.has(type(value[0])):
            continue
        if _number(value[0]):
            yield value
        else:
            for entry in value:
                yield from lists_of_partitions(entry)


def _number(entry: Any) -> str:
    """The field with the number of a partition; empty where the entry is no partition."""
    return next((name for name in ("partition_index", "partition") if hasattr(entry, name)), "")


@kind("F-36", target=listing)
def answer_twice(stage: Stage, fault: Fault) -> End | None:
    """Responses name a partition twice."""

    def edit(request: Any, response: Any) -> Message:
        for entries in lists_of_partitions(response):
            entries.append(copy.copy(entries[0]))
        return response  # type: ignore[no-any-return]

    rule = stage.cluster.on(fault.target, edit, times=3)
    return lambda: stage.cluster.lift(rule)


@kind("F-36", target=listing)
def answer_unasked(stage: Stage, fault: Fault) -> End | None:
    """Responses name a partition that was not requested, and that does not exist."""

    def edit(request: Any, response: Any) -> Message:
        for entries in lists_of_partitions(response):
            stranger = copy.copy(entries[0])
            setattr(stranger, _number(stranger), UNHEARD_OF)
            entries.append(stranger)
        return response  # type: ignore[no-any-return]

    rule = stage.cluster.on(fault.target, edit, times=3)
    return lambda: stage.cluster.lift(rule)


@kind("F-33", target=broker, fits=several_brokers)
def stale_broker(stage: Stage, fault: Fault) -> End | None:
    """One broker reports stale leaders; the others report the current ones, and the client gets both."""
    edit = leaders_of_now(stage)
    rule = stage.cluster.on("Metadata", edit, broker=int(fault.target))
    for part in stage.partitions()[::2]:
        if others := stage.other_replicas(part):
            stage.cluster.move_leader(TOPIC, part.number, others[0])
    return lambda: stage.cluster.lift(rule)


@kind("F-34", target=partition, fits=several_brokers, amount=amount(0, 1))
def move_leader_quietly(stage: Stage, fault: Fault) -> End | None:
    """Another replica leads, and Fetch does not say which (KIP-951): brokers leave the hint out (0), or half (1)."""

    def edit(request: Any, response: Any) -> Message:
        response.node_endpoints = []
        for part in (part for topic in response.responses for part in topic.partitions):
            part.current_leader = part.current_leader if fault.amount else None
        return response  # type: ignore[no-any-return]

    rule = stage.cluster.on("Fetch", edit)
    move_leader(stage, fault)
    return lambda: stage.cluster.lift(rule)

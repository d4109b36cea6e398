"""What brokers answer instead of what they should."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, Final

from kclient.protocol.message import Message
from kclient.records.batch import BATCH_HEADER_BYTES, SIZE_PREFIX_BYTES
from tests.simulation.application import GROUP, TOPIC
from tests.simulation.faults.kinds import End, amount, kind, nothing
from tests.simulation.plan import Fault
from tests.simulation.scenario import Scenario

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

RETRIABLE: Final = {
    "Metadata": ("LEADER_NOT_AVAILABLE",),
    "FindCoordinator": ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"),
    "JoinGroup": ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"),
    "SyncGroup": ("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "REBALANCE_IN_PROGRESS"),
    "Heartbeat": ("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "REBALANCE_IN_PROGRESS"),
    "OffsetCommit": ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"),
    "OffsetFetch": ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"),
    "ListOffsets": ("NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE"),
    "OffsetForLeaderEpoch": ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH"),
    "Fetch": ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "KAFKA_STORAGE_ERROR"),
}
FATAL: Final = {
    "JoinGroup": ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"),
    "SyncGroup": ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"),
    "Heartbeat": ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"),
    "OffsetCommit": ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"),
    "Fetch": ("UNKNOWN_SERVER_ERROR",),
    "ListOffsets": ("UNKNOWN_SERVER_ERROR",),
}
OFTEN: Final = (
    "Metadata",
    "FindCoordinator",
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "OffsetCommit",
    "OffsetFetch",
)
ANY: Final = (*OFTEN, "ListOffsets", "Fetch", "ApiVersions", "LeaveGroup")


def error_of(table: dict[str, tuple[str, ...]]) -> Any:
    """An API and one of its errors, as "Fetch NOT_LEADER_OR_FOLLOWER"."""

    def draw(rng: Random, scenario: Scenario) -> str:
        api = rng.choice(list(table))
        return f"{api} {rng.choice(table[api])}"

    return draw


def of_members(rng: Random, scenario: Scenario) -> str:
    """The name of an API that only members use."""
    return rng.choice(("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit"))


def static(scenario: Scenario) -> bool:
    """Where members have instance ids."""
    return scenario.static


def of_one_protocol(scenario: Scenario) -> bool:
    """Where members need nothing that older brokers lack."""
    return scenario.protocol == scenario.later_protocol or (
        scenario.protocol == "classic" and not scenario.later_protocol
    )


def api(rng: Random, scenario: Scenario) -> str:
    """The name of an API."""
    return rng.choice(ANY)


@kind("F-30", target=error_of(RETRIABLE), amount=amount(1, 1, 3, 10))
def retriable_error(stage: Stage, fault: Fault) -> End | None:
    """An error that another try may heal, so many times."""
    name, error = fault.target.split()
    rule = stage.cluster.fail(name, error, int(fault.amount))
    return lambda: stage.cluster.lift(rule)


@kind("F-31", target=error_of(FATAL), amount=amount(1, 1, 2))
def fatal_error(stage: Stage, fault: Fault) -> End | None:
    """An error that no other try of the same request heals."""
    name, error = fault.target.split()
    rule = stage.cluster.fail(name, error, int(fault.amount))
    return lambda: stage.cluster.lift(rule)


@kind("F-32", target=api, amount=amount(50, 500, 3_000))
def throttle(stage: Stage, fault: Fault) -> End | None:
    """The client is asked to keep silent for so many ms."""
    rule = stage.cluster.throttle(fault.target, int(fault.amount))
    return lambda: stage.cluster.lift(rule)


@kind("F-32", target=api, amount=amount(-1, 2**31 - 1))
def throttle_absurdly(stage: Stage, fault: Fault) -> End | None:
    """A response has a throttle time of so many ms, far too long."""

    def edit(request: Any, response: Any) -> Message:
        if hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = int(fault.amount)
        return response  # type: ignore[no-any-return]

    rule = stage.cluster.on(fault.target, edit, times=2)
    return lambda: stage.cluster.lift(rule)


@kind("F-08", target=api, amount=amount(100, 1_000, 8_000))
def answer_late(stage: Stage, fault: Fault) -> End | None:
    """An API takes so many ms."""
    rule = stage.cluster.delay(fault.target, fault.amount)
    return lambda: stage.cluster.lift(rule)


@kind("F-08", target=api, amount=amount(0, 1))
def never_answer(stage: Stage, fault: Fault) -> End | None:
    """One request is not answered; whether it was done depends."""
    rule = stage.cluster.drop(fault.target, handled=bool(fault.amount))
    return lambda: stage.cluster.lift(rule)


@kind("F-07", target=api, amount=amount(0, 3, 11, 60))
def cut_answer(stage: Stage, fault: Fault) -> End | None:
    """A request is done, and its response cut after so many bytes."""
    rule = stage.cluster.cut(fault.target, int(fault.amount))
    return lambda: stage.cluster.lift(rule)


@kind("F-33")
def stale_metadata(stage: Stage, fault: Fault) -> End | None:
    """Brokers keep reporting the leaders of now, however they change; some change at once."""
    edit = leaders_of_now(stage)
    for part in stage.partitions()[::2]:
        others = stage.other_replicas(part)
        if others:
            stage.cluster.move_leader(TOPIC, part.number, others[0])
    rule = stage.cluster.on("Metadata", edit)
    return lambda: stage.cluster.lift(rule)


def leaders_of_now(stage: Stage) -> Callable[[Any, Any], Message]:
    """An edit of Metadata that returns the leaders of this moment, unless the topic was recreated since."""
    topics = stage.cluster.state.topics
    frozen = {part.number: (part.leader, part.leader_epoch) for part in stage.partitions()}
    was = topics.get(TOPIC)

    def edit(request: Any, response: Any) -> Message:
        for topic in response.topics if topics.get(TOPIC) is was else ():
            for part in topic.partitions if topic.name == TOPIC else ():
                if part.partition_index in frozen:
                    part.leader_id, part.leader_epoch = frozen[part.partition_index]
        return response  # type: ignore[no-any-return]

    return edit


def answered_in_part(rng: Random, scenario: Scenario) -> str:
    """The name of an API whose responses are lists."""
    return rng.choice(("OffsetFetch", "ListOffsets", "Fetch", "OffsetCommit", "Metadata"))


@kind("F-36", target=answered_in_part, amount=amount(0, 1))
def partial_answer(stage: Stage, fault: Fault) -> End | None:
    """A response is about some of what was asked for only."""
    rule = stage.cluster.partial(fault.target, int(fault.amount), times=3)
    return lambda: stage.cluster.lift(rule)


@kind("F-46", target=nothing, amount=amount(0, 1))
def revoke_access(stage: Stage, fault: Fault) -> End | None:
    """The topic, or the group, may not be read for a while."""
    resource = f"Group:{GROUP}" if fault.amount else f"Topic:{TOPIC}"
    stage.cluster.deny("*", "READ", resource)
    return stage.cluster.state.acl.clear


@kind("F-18", amount=amount(1, 3, 10))
def flip_bits(stage: Stage, fault: Fault) -> End | None:
    """A bit in the middle of a batch's records, so after its checksum, is wrong in so many responses."""

    def edit(request: Any, response: Any) -> Message:
        parts = [part for topic in response.responses for part in topic.partitions if part.records]
        for part in parts[-1:]:
            damaged = bytearray(part.records)
            end = min(len(damaged), SIZE_PREFIX_BYTES + int.from_bytes(damaged[8:SIZE_PREFIX_BYTES], "big"))
            damaged[min(end - 1, (BATCH_HEADER_BYTES + end) // 2)] ^= 1
            part.records = bytes(damaged)
        return response  # type: ignore[no-any-return]

    rule = stage.cluster.on("Fetch", edit, times=int(fault.amount))
    return lambda: stage.cluster.lift(rule)


@kind("F-47", amount=amount(0, 1, 2))
def small_group(stage: Stage, fault: Fault) -> End | None:
    """The group takes no more than so many members."""
    settings = stage.cluster.state.settings
    before = settings.group_max_size
    settings.group_max_size = settings.group_consumer_max_size = max(1, int(fault.amount))

    def end() -> None:
        settings.group_max_size = settings.group_consumer_max_size = before

    return end


@kind("F-47", target=of_members, fits=static)
def fence(stage: Stage, fault: Fault) -> End | None:
    """A member hears that another one has its instance id."""
    rule = stage.cluster.fail(fault.target, "FENCED_INSTANCE_ID", 1)
    return lambda: stage.cluster.lift(rule)


@kind("F-45", fits=of_one_protocol)
def other_release(stage: Stage, fault: Fault) -> End | None:
    """Brokers speak the versions of an older release from their next connections on, as in a roll back."""
    return stage.speak("2.8")

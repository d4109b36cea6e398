"""A group as its coordinator describes it to anybody who may look: kind, state, members and what they hold.

    ConsumerGroupDescribe   groups of KIP-848                  answers 69 for any other group, or is not known
    DescribeGroups          classic groups, and simple ones    answers Dead, and 69 since version 6, for no group

A simple group is a name under which offsets are stored, without members ever. Hosts are told with a slash in front;
it is left out here.

Which groups there are: ListGroups, asked of every broker, for each knows only those that it coordinates.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import attrs

from kclient.config import Config
from kclient.errors import KclientError, VersionError
from kclient.generated.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kclient.generated.consumer_group_describe_response import Assignment as DescribedAssignment
from kclient.generated.consumer_group_describe_response import ConsumerGroupDescribeResponse
from kclient.generated.consumer_group_describe_response import DescribedGroup as DescribedConsumerGroup
from kclient.generated.consumer_group_describe_response import Member as DescribedConsumer
from kclient.generated.describe_groups_request import DescribeGroupsRequest
from kclient.generated.describe_groups_response import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from kclient.generated.list_groups_request import ListGroupsRequest
from kclient.generated.list_groups_response import ListedGroup, ListGroupsResponse
from kclient.group.coordinator import Coordinator, VersionedRequest, expect, request_until_answered
from kclient.group.subscription_codec import PROTOCOL_TYPE, decode_assignment, decode_subscription
from kclient.network.backoff import Backoff
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
from kclient.runtime import Runtime
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.network.cluster import Cluster

CONSUMER: Final = "consumer"
CLASSIC: Final = "classic"
SIMPLE: Final = "simple"
DEAD: Final = "Dead"
NOT_OF_THIS_KIND: Final = (codes.GROUP_ID_NOT_FOUND, codes.UNSUPPORTED_VERSION)


@attrs.frozen
class MemberDescription:
    """A member of a group. `topics` and `partitions` are what it subscribes to and holds.

    Both are empty while a classic group rebalances, and in groups that are not of consumers. `pattern` and
    `member_epoch` are of the consumer protocol alone.
    """

    member_id: str
    client_id: str
    client_host: str
    group_instance_id: str | None = None
    topics: tuple[str, ...] = ()
    partitions: tuple[TopicPartition, ...] = ()
    pattern: str | None = None
    member_epoch: int | None = None


@attrs.frozen
class GroupDescription:
    """A group. `kind` is "consumer" (KIP-848), "classic", or "simple": offsets without members.

    `state` is the coordinator's word: Empty, Stable, PreparingRebalance, CompletingRebalance; Assigning, Reconciling.
    `assignor` is empty where none is in use. `coordinator` is a broker id, `group_epoch` of KIP-848.
    """

    group_id: str
    kind: str
    state: str
    coordinator: int
    assignor: str = ""
    group_epoch: int | None = None
    members: tuple[MemberDescription, ...] = ()


async def describe_group(
    coordinator: Coordinator, config: Config, runtime: Runtime
) -> GroupDescription | None:
    """The group, None where its coordinator knows none. The caller bounds it.

    Raises GroupAuthorizationError, TopicAuthorizationError where a member has topics that may not be seen,
    ProtocolDecodeError for a member's blob that is damaged, and what `Coordinator.ensure` raises.
    """
    group = await _newer(coordinator, config, runtime)
    if group is None:
        group = await _older(coordinator, config, runtime)
    return group


async def _newer(coordinator: Coordinator, config: Config, runtime: Runtime) -> GroupDescription | None:
    """A group of KIP-848, None where it is of another kind, or the broker too old to have any."""
    form = VersionedRequest(ConsumerGroupDescribeRequest(group_ids=[coordinator.group_id]))
    kind = ConsumerGroupDescribeResponse
    try:
        answer = await request_until_answered(
            coordinator, kind, form, code_of=_code, config=config, runtime=runtime
        )
    except VersionError as exc:
        if exc.api == "ApiVersions":  # it is no broker at all
            raise
        return None
    if _code(answer) in NOT_OF_THIS_KIND:
        return None
    group = answer.groups[0]
    _require_none(group.error_code, group.error_message, coordinator.group_id)
    return _of_consumers(group, await coordinator.ensure())


async def _older(coordinator: Coordinator, config: Config, runtime: Runtime) -> GroupDescription | None:
    """A classic or a simple group, None where there is none."""
    form = VersionedRequest(DescribeGroupsRequest(groups=[coordinator.group_id]))
    kind = DescribeGroupsResponse
    answer = await request_until_answered(
        coordinator, kind, form, code_of=_code, config=config, runtime=runtime
    )
    if _code(answer) == codes.GROUP_ID_NOT_FOUND:
        return None
    group = answer.groups[0]
    _require_none(group.error_code, group.error_message, coordinator.group_id)
    return None if group.group_state == DEAD else _classic(group, await coordinator.ensure())


def _code(answer: ConsumerGroupDescribeResponse | DescribeGroupsResponse) -> int:
    return answer.groups[0].error_code if answer.groups else codes.GROUP_ID_NOT_FOUND


def _require_none(code: int, message: str | None, group_id: str) -> None:
    if code != codes.NONE:
        raise broker_error(code, f"Describing group {group_id}", group=group_id, message=message)


def _of_consumers(group: DescribedConsumerGroup, coordinator: int) -> GroupDescription:
    return GroupDescription(
        group_id=group.group_id,
        kind=CONSUMER,
        state=group.group_state,
        coordinator=coordinator,
        assignor=group.assignor_name,
        group_epoch=group.group_epoch,
        members=tuple(_consumer(member) for member in group.members),
    )


def _consumer(member: DescribedConsumer) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host.removeprefix("/"),
        group_instance_id=member.instance_id,
        topics=tuple(member.subscribed_topic_names),
        partitions=_held(member.assignment),
        pattern=member.subscribed_topic_regex or None,
        member_epoch=member.member_epoch,
    )


def _held(assignment: DescribedAssignment) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, number)
        for topic in assignment.topic_partitions
        for number in topic.partitions
    )


def _classic(group: DescribedGroup, coordinator: int) -> GroupDescription:
    of_consumers = group.protocol_type == PROTOCOL_TYPE
    return GroupDescription(
        group_id=group.group_id,
        kind=CLASSIC if group.protocol_type else SIMPLE,
        state=group.group_state,
        coordinator=coordinator,
        assignor=group.protocol_data,
        members=tuple(_member(member, of_consumers) for member in group.members),
    )


def _member(member: DescribedGroupMember, of_consumers: bool) -> MemberDescription:
    wanted, held = member.member_metadata, member.member_assignment
    return MemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host.removeprefix("/"),
        group_instance_id=member.group_instance_id,
        topics=decode_subscription(wanted).topics if of_consumers and wanted else (),
        partitions=decode_assignment(held).partitions if of_consumers and held else (),
    )


async def list_groups(cluster: Cluster, config: Config, runtime: Runtime) -> list[ListedGroup]:
    """Every group that the caller may see, by name. The caller bounds it; a broker that is away is waited for."""
    backoff = Backoff.for_retries(config, runtime)
    found: dict[str, ListedGroup] = {}
    for node_id in sorted(cluster.metadata.brokers):
        while True:
            try:
                found |= {group.group_id: group for group in await _ask(cluster, node_id)}
                break
            except KclientError as exc:
                if not exc.retriable:
                    raise
            await asyncio.sleep(backoff.next())
    return [found[name] for name in sorted(found)]


async def _ask(cluster: Cluster, node_id: int) -> list[ListedGroup]:
    answer = expect(ListGroupsResponse, await cluster.request(node_id, ListGroupsRequest()))
    if answer.error_code != codes.NONE:
        raise broker_error(answer.error_code, f"Listing the groups of broker {node_id}")
    return answer.groups

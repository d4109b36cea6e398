"""Describing a group (kind, state, members and their partitions) and listing the groups of a cluster.

    ConsumerGroupDescribe   groups of KIP-848                  answers 69 for any other group; not in old brokers
    DescribeGroups          classic and simple groups          answers Dead, since version 6 code 69, for no group

A simple group only has committed offsets, and never had members. Brokers report hosts with a leading slash, which is
removed here. ListGroups goes to every broker, because each lists only the groups that it coordinates.
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
NOT_A_CONSUMER_GROUP: Final = (codes.GROUP_ID_NOT_FOUND, codes.UNSUPPORTED_VERSION)


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
    """Return the description of a group, None if it does not exist. The caller sets the timeout.

    Raises GroupAuthorizationError, TopicAuthorizationError where a member has topics that may not be seen,
    ProtocolDecodeError for a member's blob that is damaged, and what `Coordinator.ensure` raises.
    """
    group = await _describe_consumer_group(coordinator, config, runtime)
    if group is None:
        group = await _describe_classic_group(coordinator, config, runtime)
    return group


async def _describe_consumer_group(
    coordinator: Coordinator, config: Config, runtime: Runtime
) -> GroupDescription | None:
    """Return a group of KIP-848, None if it is of another kind or the broker is too old for such groups."""
    request = VersionedRequest(ConsumerGroupDescribeRequest(group_ids=[coordinator.group_id]))
    kind = ConsumerGroupDescribeResponse
    try:
        response = await request_until_answered(
            coordinator, kind, request, code_of=_code, config=config, runtime=runtime
        )
    except VersionError as exc:
        if exc.api == "ApiVersions":  # the peer is not a Kafka broker
            raise
        return None
    if _code(response) in NOT_A_CONSUMER_GROUP:
        return None
    group = response.groups[0]
    _require_none(group.error_code, group.error_message, coordinator.group_id)
    return _of_consumers(group, await coordinator.ensure())


async def _describe_classic_group(
    coordinator: Coordinator, config: Config, runtime: Runtime
) -> GroupDescription | None:
    """Return a classic or simple group, None if there is none."""
    request = VersionedRequest(DescribeGroupsRequest(groups=[coordinator.group_id]))
    kind = DescribeGroupsResponse
    response = await request_until_answered(
        coordinator, kind, request, code_of=_code, config=config, runtime=runtime
    )
    if _code(response) == codes.GROUP_ID_NOT_FOUND:
        return None
    group = response.groups[0]
    _require_none(group.error_code, group.error_message, coordinator.group_id)
    return None if group.group_state == DEAD else _classic(group, await coordinator.ensure())


def _code(response: ConsumerGroupDescribeResponse | DescribeGroupsResponse) -> int:
    return response.groups[0].error_code if response.groups else codes.GROUP_ID_NOT_FOUND


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
    subscription, assignment = member.member_metadata, member.member_assignment
    return MemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host.removeprefix("/"),
        group_instance_id=member.group_instance_id,
        topics=decode_subscription(subscription).topics if of_consumers and subscription else (),
        partitions=decode_assignment(assignment).partitions if of_consumers and assignment else (),
    )


async def list_groups(cluster: Cluster, config: Config, runtime: Runtime) -> list[ListedGroup]:
    """Return the groups that the client is authorized for, sorted. Waits for unavailable brokers: set a timeout."""
    backoff = Backoff.for_retries(config, runtime)
    found: dict[str, ListedGroup] = {}
    for node_id in sorted(cluster.metadata.brokers):
        while True:
            try:
                found |= {group.group_id: group for group in await _list_groups_of_broker(cluster, node_id)}
                break
            except KclientError as exc:
                if not exc.retriable:
                    raise
            await asyncio.sleep(backoff.next())
    return [found[name] for name in sorted(found)]


async def _list_groups_of_broker(cluster: Cluster, node_id: int) -> list[ListedGroup]:
    response = expect(ListGroupsResponse, await cluster.request(node_id, ListGroupsRequest()))
    if response.error_code != codes.NONE:
        raise broker_error(response.error_code, f"Listing the groups of broker {node_id}")
    return response.groups

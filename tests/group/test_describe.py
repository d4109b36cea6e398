"""Describing a group: responses that no broker should give."""

from __future__ import annotations

import asyncio

import pytest

from kclient.generated.consumer_group_describe_response import ConsumerGroupDescribeResponse
from kclient.generated.consumer_group_describe_response import DescribedGroup as DescribedConsumerGroup
from kclient.generated.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from kclient.group.describe import GroupDescription, describe_group
from tests.group.scripted_group import GROUP, coordinating, scripted
from tests.scripted_broker import On, ScriptedBroker

NOBODY = On("ConsumerGroupDescribeRequest", ConsumerGroupDescribeResponse(groups=[]))


def described(peer: ScriptedBroker) -> GroupDescription | None:
    async def run() -> GroupDescription | None:
        async with peer, coordinating(peer) as (_, coordinator, settings, runtime), asyncio.timeout(10):
            return await describe_group(coordinator, settings, runtime)

    return asyncio.run(run())


@pytest.mark.spec("C.5")
def test_responses_that_report_no_group_mean_that_there_is_none() -> None:
    nothing = On("DescribeGroupsRequest", DescribeGroupsResponse(groups=[]))
    assert described(scripted(NOBODY, nothing)) is None


@pytest.mark.spec("C.5")
@pytest.mark.parametrize("newer", [True, False])
def test_of_a_response_that_reports_more_than_was_asked_for_the_first_counts(newer: bool) -> None:
    names = (GROUP, "another")
    if newer:
        groups = [DescribedConsumerGroup(group_id=name, group_state="Empty") for name in names]
        script = [On("ConsumerGroupDescribeRequest", ConsumerGroupDescribeResponse(groups=groups))]
    else:
        old = [DescribedGroup(group_id=name, group_state="Empty") for name in names]
        script = [NOBODY, On("DescribeGroupsRequest", DescribeGroupsResponse(groups=old))]
    found = described(scripted(*script))
    assert found is not None
    assert (found.group_id, found.state) == (GROUP, "Empty")

"""`__consumer_offsets` of real brokers, read by kclient: the same as other clients and Kafka's own tools say."""

from __future__ import annotations

import pytest

from kclient import TopicPartition, group
from kclient.generated.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kclient.generated.group_metadata_value import GroupMetadataValue
from kclient.group.offsets_topic import OffsetsRecord
from localkafka import KafkaCluster, command_line
from tests.kafka import other_clients
from tests.kafka.offsets_activity import Activity, members

COMMIT, GROUP = 1, 2
CLASSIC = ("range", "cooperative", "static", "python", "ours")
NEWER = ("newer", "regex")


@pytest.mark.spec("S1-01", "S1-10", "S1-11", "C.4", "B.20")
@pytest.mark.parametrize("cluster", ["kafka1", "kafka28"])
def test_commits_and_members_are_what_brokers_report(
    request: pytest.FixtureRequest, cluster: str, fresh_name: str
) -> None:
    kafka: KafkaCluster = request.getfixturevalue(cluster)
    newer = cluster == "kafka1"
    kafka.create_topic(fresh_name, 2)
    other_clients.produce_numbers(kafka, fresh_name, range(10), 2)
    activity = Activity(kafka, fresh_name, fresh_name)
    with members(activity, newer=newer):
        pairs = activity.read()
        records = activity.mine(pairs)
        commits = group.committed_offsets(pairs)
        for name in activity.names.values():
            offsets = {tp: commit.offset for tp, commit in commits[name].items()}
            assert offsets == other_clients.committed(kafka, name), name
        assert commits[activity.name("ours")][TopicPartition(fresh_name, 1)].metadata == "from kclient"
        for what in CLASSIC:
            _, reported = other_clients.members(kafka, activity.name(what))
            assert classic_members(records, activity.name(what)) == reported
        for what in NEWER if newer else ():
            _, reported = other_clients.members(kafka, activity.name(what))
            assert numbers_held(records, activity.name(what)) == {tp.partition for tp in reported[what]}
    activity.delete("ours")
    pairs = activity.read()
    assert activity.name("ours") not in group.committed_offsets(pairs)
    assert [one for one in activity.mine(pairs) if one.group_id == activity.name("ours")][-1].is_tombstone
    for formatter, record_type in ((command_line.COMMITS, COMMIT), (command_line.GROUPS, GROUP)):
        ours = [one.to_json() for one in activity.mine(pairs) if one.record_type == record_type]
        assert ours == activity.formatted(formatter, len(pairs))


def classic_members(records: list[OffsetsRecord], name: str) -> dict[str, set[TopicPartition]]:
    """Client id → partitions, in the last record of a classic group."""
    values = [one.value for one in records if one.record_type == GROUP and one.group_id == name]
    assert isinstance(values[-1], GroupMetadataValue)
    return {
        member.row.client_id: set(member.assignment.partitions if member.assignment is not None else ())
        for member in group.read_members(values[-1])
    }


def numbers_held(records: list[OffsetsRecord], name: str) -> set[int]:
    """The partitions of the one member of a group of KIP-848."""
    values = [one.value for one in records if one.group_id == name]
    (*_, last) = [one for one in values if isinstance(one, ConsumerGroupCurrentMemberAssignmentValue)]
    return {number for row in last.assigned_partitions for number in row.partitions}

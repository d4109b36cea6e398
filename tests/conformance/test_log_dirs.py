"""DescribeLogDirs: the bytes of replicas. Where the directory is, and how large its disk, differs everywhere."""

from __future__ import annotations

import pytest

from kclient.generated.describe_log_dirs_request import DescribableLogDirTopic, DescribeLogDirsRequest
from kclient.generated.describe_log_dirs_response import DescribeLogDirsPartition
from kclient.protocol import errors
from kclient.records.writer import NewRecord, build_batch
from tests.conformance.target import Target


def described(
    target: Target, version: int, topics: dict[str, list[int]] | None
) -> dict[tuple[str, int], DescribeLogDirsPartition]:
    """What the one directory of the broker holds."""
    rows = (
        None if topics is None else [DescribableLogDirTopic(topic=t, partitions=p) for t, p in topics.items()]
    )
    response = target.ask(DescribeLogDirsRequest(topics=rows), version)
    assert response.error_code == errors.NONE
    [directory] = response.results
    assert directory.error_code == errors.NONE
    assert directory.log_dir.startswith("/")
    assert not directory.is_cordoned
    return {(topic.name, row.partition_index): row for topic in directory.topics for row in topic.partitions}


@pytest.mark.api("DescribeLogDirs")
def test_a_replica_has_the_bytes_of_its_batches(target: Target, version: int) -> None:
    topic = target.topic(partitions=2)
    batches = [
        build_batch([NewRecord(value=b"one"), NewRecord(value=b"two")]),
        build_batch([NewRecord(value=b"three" * 99)]),
    ]
    for batch in batches:
        target.append(topic, batch)
    sizes = {
        number: row.partition_size for (_, number), row in described(target, version, {topic: [0, 1]}).items()
    }
    assert sizes == {0: sum(map(len, batches)), 1: 0}


@pytest.mark.api("DescribeLogDirs", few=True)
def test_only_what_was_asked_for_and_what_exists_is_listed(target: Target, version: int) -> None:
    topic = target.topic(partitions=3)
    wanted = {topic: [2, 0, 7], "there-is-no-such-topic": [0]}
    found = described(target, version, wanted)
    assert set(found) == {(topic, 0), (topic, 2)}
    assert [(row.offset_lag, row.is_future_key) for row in found.values()] == [(0, False)] * 2
    assert described(target, version, {}) == {}
    assert described(target, version, {topic: []}) == {}


@pytest.mark.api("DescribeLogDirs", few=True)
def test_without_topics_all_are_listed(target: Target, version: int) -> None:
    topic = target.topic(partitions=2)
    assert {(topic, 0), (topic, 1)} <= set(described(target, version, None))

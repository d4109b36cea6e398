"""The facts in the schemas: complete, paired, and the same as those another client of Kafka carries.

The table of APIs is written down here once more, from the protocol page and not from the schemas; kafka-python's own
message definitions (a development dependency) are the second witness, layout by layout.
"""

from __future__ import annotations

import csv

import pytest

from tests.schemas.peer import peer_messages
from tests.schemas.support import SCHEMAS, Node, all_messages, bounds, layout

MESSAGES = all_messages()

# API → (key, newest version, first flexible version or None)
APIS: dict[str, tuple[int, int, int | None]] = {
    "Produce": (0, 13, 9),
    "Fetch": (1, 18, 12),
    "ListOffsets": (2, 11, 6),
    "Metadata": (3, 13, 9),
    "OffsetCommit": (8, 10, 8),
    "OffsetFetch": (9, 10, 6),
    "FindCoordinator": (10, 6, 3),
    "JoinGroup": (11, 9, 6),
    "Heartbeat": (12, 4, 4),
    "LeaveGroup": (13, 5, 4),
    "SyncGroup": (14, 5, 4),
    "DescribeGroups": (15, 6, 5),
    "ListGroups": (16, 5, 3),
    "SaslHandshake": (17, 1, None),
    "ApiVersions": (18, 5, 3),
    "CreateTopics": (19, 7, 5),
    "DeleteTopics": (20, 6, 4),
    "InitProducerId": (22, 6, 2),
    "OffsetForLeaderEpoch": (23, 4, 4),
    "AddPartitionsToTxn": (24, 5, 3),
    "AddOffsetsToTxn": (25, 4, 3),
    "EndTxn": (26, 5, 3),
    "TxnOffsetCommit": (28, 6, 3),
    "DescribeConfigs": (32, 4, 4),
    "SaslAuthenticate": (36, 2, 2),
    "DeleteGroups": (42, 3, 2),
    "OffsetDelete": (47, 0, None),
    "ConsumerGroupHeartbeat": (68, 1, 0),
    "ConsumerGroupDescribe": (69, 1, 0),
    "GetTelemetrySubscriptions": (71, 0, 0),
    "PushTelemetry": (72, 0, 0),
    "ShareGroupHeartbeat": (76, 1, 0),
    "ShareGroupDescribe": (77, 1, 0),
    "ShareFetch": (78, 2, 0),
    "ShareAcknowledge": (79, 2, 0),
    "DescribeShareGroupOffsets": (90, 1, 0),
    "DescribeLogDirs": (35, 5, 2),
}


def newest(message: Node) -> int:
    return int(bounds(message["validVersions"])[1])


def test_all_messages_are_there() -> None:
    kinds = [message["type"] for message in MESSAGES.values()]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "request": 42, "response": 42, "header": 2, "data": 6, "coordinator-key": 22, "coordinator-value": 22,
    }  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_a_file_is_named_after_its_message(name: str) -> None:
    assert MESSAGES[name]["name"] == name


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("direction", ["Request", "Response"])
def test_key_versions_and_flexibility_of_an_api(api: str, direction: str) -> None:
    key, last, flexible = APIS[api]
    message = MESSAGES[api + direction]
    assert (message["apiKey"], bounds(message["validVersions"])) == (key, (0, last))
    assert message["flexibleVersions"] == ("none" if flexible is None else f"{flexible}+")


@pytest.mark.parametrize("name", [name for name in MESSAGES if name.endswith("Request")])
def test_a_request_has_its_response(name: str) -> None:
    request, response = MESSAGES[name], MESSAGES[name.replace("Request", "Response")]
    for fact in ("apiKey", "validVersions", "removedInKafka4", "flexibleVersions"):
        assert request.get(fact) == response.get(fact), fact


@pytest.mark.parametrize(
    "name", [name for name, node in MESSAGES.items() if node["type"] == "coordinator-key"]
)
def test_a_key_of_the_offsets_topic_has_its_value(name: str) -> None:
    key, value = MESSAGES[name], MESSAGES[name.removesuffix("Key") + "Value"]
    assert key["apiKey"] == value["apiKey"]
    assert key["validVersions"] == "0"


def test_an_api_key_belongs_to_one_api() -> None:
    for kind in ("request", "response", "coordinator-key", "coordinator-value"):
        keys = [message["apiKey"] for message in MESSAGES.values() if message["type"] == kind]
        assert len(set(keys)) == len(keys), kind


@pytest.mark.spec("S1-29", "S1-30", "S1-31", "S1-38", "E5")
@pytest.mark.parametrize("version", range(11))
def test_offset_commit_in_every_version(version: int) -> None:
    body, per_partition = ["GroupId"], ["PartitionIndex", "CommittedOffset"]
    if version >= 1:
        body += ["GenerationIdOrMemberEpoch", "MemberId"]
    if version >= 7:
        body += ["GroupInstanceId"]
    if 2 <= version <= 4:
        body += ["RetentionTimeMs"]
    if version >= 6:
        per_partition += ["CommittedLeaderEpoch"]
    if version == 1:
        per_partition += ["CommitTimestamp"]
    per_partition += ["CommittedMetadata"]
    topic = "TopicId" if version >= 10 else "Name"
    assert names("OffsetCommitRequest", version) == [
        *body, "Topics", f"  {topic}", "  Partitions", *(f"    {name}" for name in per_partition),
    ]  # fmt: skip
    assert names("OffsetCommitResponse", version) == [
        *(["ThrottleTimeMs"] if version >= 3 else []),
        "Topics", f"  {topic}", "  Partitions", "    PartitionIndex", "    ErrorCode",
    ]  # fmt: skip


@pytest.mark.spec("S1-26", "E5")
def test_headers() -> None:
    assert [names("RequestHeader", version) for version in range(3)] == [
        ["RequestApiKey", "RequestApiVersion", "CorrelationId"],
        ["RequestApiKey", "RequestApiVersion", "CorrelationId", "ClientId"],
        ["RequestApiKey", "RequestApiVersion", "CorrelationId", "ClientId"],
    ]
    assert "ClientId: string nullable never compact" in layout(MESSAGES["RequestHeader"], 2)
    assert [names("ResponseHeader", version) for version in range(2)] == [
        ["CorrelationId"],
        ["CorrelationId"],
    ]


def names(message: str, version: int) -> list[str]:
    return [line.split(":")[0] for line in layout(MESSAGES[message], version)[1:]]


PEER = {name: message for name, message in peer_messages().items() if name in MESSAGES}


def test_the_peer_knows_most_messages() -> None:
    assert len(PEER) >= 60


@pytest.mark.parametrize("name", PEER)
def test_every_layout_equals_the_peers(name: str) -> None:
    first, last = bounds(PEER[name]["validVersions"])
    for version in range(int(first), int(min(last, newest(MESSAGES[name]))) + 1):
        assert layout(MESSAGES[name], version) == in_new_words(name, version), f"version {version}"


def in_new_words(name: str, version: int) -> list[str]:
    """The peer's layout; it has a field of TxnOffsetCommit by its name before Kafka 4.4."""
    lines = layout(PEER[name], version)
    if name != "TxnOffsetCommitRequest":
        return lines
    return [line.replace("GenerationId:", "GenerationIdOrMemberEpoch:") for line in lines]


@pytest.mark.spec("B.15.1")
def test_the_errors_that_another_try_may_cure() -> None:
    with (SCHEMAS / "errors.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    flagged = {flag: {int(row["code"]) for row in rows if row[flag] == "true"} for flag in list(rows[0])[2:]}
    codes = [int(row["code"]) for row in rows]
    assert codes == sorted(set(codes))
    assert flagged["invalid_metadata"] == {3, 5, 6, 9, 13, 56, 72, 74, 80, 83, 84, 100, 103}
    assert flagged["retriable"] - flagged["invalid_metadata"] == {
        2, 7, 14, 15, 16, 19, 20, 41, 51, 70, 71, 75, 78, 88, 89, 106, 122, 123, 133,
    }  # fmt: skip
    assert flagged["refresh_retriable"] <= flagged["retriable"]

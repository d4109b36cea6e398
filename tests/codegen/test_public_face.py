"""The registry, JSON beside bytes, and the table of error codes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kclient import protocol
from kclient.errors import ProtocolEncodeError
from kclient.generated.api_versions_request import ApiVersionsRequest
from kclient.generated.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kclient.protocol import errors
from kclient.protocol.registry import message_class, message_names, read_message, request_name, response_name

LOADED = """
import sys, kclient.protocol
print(sorted(name for name in sys.modules if name.startswith("kclient.generated.")))
kclient.protocol.decode("HeartbeatResponse", 0, bytes(2))
print(sorted(name for name in sys.modules if name.startswith("kclient.generated.")))
"""


def test_modules_are_loaded_when_first_needed() -> None:
    ran = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [
        "['kclient.generated.index']",
        "['kclient.generated.heartbeat_response', 'kclient.generated.index']",
    ]


def test_every_message_has_its_class() -> None:
    assert len(message_names()) == 136
    for name in message_names():
        assert name == message_class(name).NAME
    assert (request_name(18), response_name(1)) == ("ApiVersionsRequest", "FetchResponse")


def test_a_message_is_read_in_the_middle_of_a_buffer() -> None:
    body = protocol.encode(ApiVersionsRequest(client_software_name="kclient"), 3)
    message, end = read_message("ApiVersionsRequest", 3, memoryview(b"head" + body + b"tail"), 4)
    assert message == ApiVersionsRequest(client_software_name="kclient")
    assert end == 4 + len(body)


def fetched(records: bytes) -> FetchResponse:
    partition = PartitionData(
        partition_index=3, records=records, unknown_tags=((9, b"nine"), (2**31 - 1, b""))
    )
    return FetchResponse(responses=[FetchableTopicResponse(topic="flights", partitions=[partition])])


def test_records_stay_a_view_of_the_frame() -> None:
    frame = protocol.encode(fetched(b"batch"), 12)
    message = protocol.decode("FetchResponse", 12, frame)
    assert isinstance(message, FetchResponse)
    records = message.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert (records.obj, bytes(records)) == (frame, b"batch")


@pytest.mark.spec("C.1")
def test_json_carries_records_and_unknown_tags_beside_it() -> None:
    message = fetched(b"batch")
    fields = protocol.to_json(message, 12)
    [partition] = fields["responses"][0]["partitions"]
    assert partition["recordsSizeInBytes"] == 5
    assert "divergingEpoch" not in partition
    tags = protocol.unknown_tags_of(message)
    assert tags == {"responses[0].partitions[0]": {9: b"nine", 2**31 - 1: b""}}
    records = protocol.records_of(message)
    again = protocol.from_json("FetchResponse", 12, fields, records=records, unknown_tags=tags)
    assert protocol.encode(again, 12) == protocol.encode(message, 12)


def test_a_tagged_struct_is_none_until_it_says_something() -> None:
    message = fetched(b"")
    [partition] = message.responses[0].partitions
    assert partition.diverging_epoch is None
    silent = protocol.encode(message, 12)
    partition.diverging_epoch = EpochEndOffset()
    assert protocol.encode(message, 12) == silent
    partition.diverging_epoch = EpochEndOffset(epoch=4, end_offset=77)
    read = protocol.decode("FetchResponse", 12, protocol.encode(message, 12))
    assert isinstance(read, FetchResponse)
    assert read.responses[0].partitions[0].diverging_epoch == EpochEndOffset(epoch=4, end_offset=77)


@pytest.mark.parametrize(
    ("fields", "more", "path"),
    [
        ({"sessionid": 1}, {}, "sessionid"),
        ({"nodeEndpoints": []}, {}, "nodeEndpoints"),  # only from version 16 on
        ({"responses": {}}, {}, "responses"),
        ({"responses": [3]}, {}, "responses[0]"),
        ({"responses": None}, {}, "responses"),
        ({"sessionId": "7"}, {}, "sessionId"),
        ({"errorCode": 2**15}, {}, "errorCode"),
        ({"responses": [{"topic": 7}]}, {}, "responses[0].topic"),
        ({"responses": [{"partitions": [{"oops": 1}]}]}, {}, "responses[0].partitions[0].oops"),
        ({}, {"records": [b"one too many"]}, ""),
        ({}, {"unknown_tags": {"responses[0]": {7: b""}}}, "responses[0]"),
    ],
)
def test_json_that_does_not_fit_is_refused(
    fields: dict[str, object], more: dict[str, object], path: str
) -> None:
    with pytest.raises(ProtocolEncodeError) as refused:
        protocol.from_json("FetchResponse", 12, fields, **more)  # type: ignore[arg-type]
    assert (refused.value.message, refused.value.version, refused.value.field) == ("FetchResponse", 12, path)


def test_json_of_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ProtocolEncodeError, match="FetchResponse has versions 0 to 18, not 19"):
        protocol.to_json(FetchResponse(), 19)
    with pytest.raises(ProtocolEncodeError, match="FetchResponse has versions 0 to 18, not 19"):
        protocol.from_json("FetchResponse", 19, {})


def test_refused_json_is_not_shown_for_it_may_be_secret() -> None:
    for value in ("hunter2!", ["hunter2"], {"hunter2": "hunter2"}):
        with pytest.raises(ProtocolEncodeError) as refused:
            protocol.from_json("SaslAuthenticateRequest", 0, {"authBytes": value})
        assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("text", ["no base64!", 7])
def test_bytes_and_uuids_must_be_base64(text: object) -> None:
    with pytest.raises(ProtocolEncodeError, match="base64"):
        protocol.from_json("SaslAuthenticateRequest", 0, {"authBytes": text})
    with pytest.raises(ProtocolEncodeError, match="base64"):
        protocol.from_json("FetchResponse", 13, {"responses": [{"topicId": text}]})
    with pytest.raises(ProtocolEncodeError, match="does not fit uuid"):
        protocol.from_json("FetchResponse", 13, {"responses": [{"topicId": "AAAA"}]})


def test_error_codes_have_names_and_treatments() -> None:
    assert errors.NOT_LEADER_OR_FOLLOWER == 6
    leader = errors.error(errors.NOT_LEADER_OR_FOLLOWER)
    assert (leader.name, leader.retriable, leader.invalid_metadata) == ("NOT_LEADER_OR_FOLLOWER", True, True)
    assert not errors.error(errors.NONE).retriable
    unknown = errors.error(31999)
    assert (unknown.code, unknown.name, unknown.retriable) == (31999, "UNKNOWN_SERVER_ERROR", False)

"""What cannot be read or written ends in one typed error that names message, version, field and byte."""

from __future__ import annotations

import pytest

from kclient import protocol
from kclient.errors import ArgumentError, ProtocolDecodeError, ProtocolEncodeError
from kclient.generated.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kclient.generated.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kclient.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from kclient.generated.offset_commit_request import OffsetCommitRequest
from kclient.generated.push_telemetry_request import PushTelemetryRequest
from kclient.protocol.message import Message

FETCH = protocol.encode(
    FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic="flights", partitions=[PartitionData(), PartitionData(records=b"abc")]
            )
        ]
    ),
    12,
)
# throttle 0–3, error 4–5, session 6–9, array 10, topic 11–18, array 19, partition 20–56, partition 57–
SECOND = 20 + 37

READ = [
    pytest.param(FETCH[:3], "throttle_time_ms", 0, id="cut in the first field"),
    pytest.param(FETCH[:14], "responses[0].topic", 11, id="cut in a string"),
    pytest.param(FETCH[:11] + b"\x08\xff" + FETCH[13:], "responses[0].topic", 11, id="not UTF-8"),
    pytest.param(FETCH[:11] + b"\x00" + FETCH[12:], "responses[0].topic", 11, id="null where none may be"),
    pytest.param(
        FETCH[:11] + b"\x81\x80\x02" + b"x" * 32768, "responses[0].topic", 11, id="a string of 32,768 bytes"
    ),
    pytest.param(FETCH[:10] + b"\xff\xff\xff\xff\x0f", "responses", 10, id="a count of 2³²−2"),
    pytest.param(FETCH[:10] + b"\xff" * 11, "responses", 10, id="a varint of eleven bytes"),
    pytest.param(
        FETCH[: SECOND + 10], "responses[0].partitions[1].high_watermark", SECOND + 6, id="cut deep inside"
    ),
    pytest.param(
        FETCH[: SECOND + 35] + b"\x7f" + FETCH[SECOND + 36 :],
        "responses[0].partitions[1].records",
        SECOND + 35,
        id="records longer than the frame",
    ),
    pytest.param(FETCH[:-1] + b"\x02\x05\x00\x05\x00", "tagged fields", len(FETCH) + 2, id="a tag twice"),
    pytest.param(FETCH[:-1] + b"\x02\x07\x00\x05\x00", "tagged fields", len(FETCH) + 2, id="descending tags"),
    pytest.param(FETCH[:-1] + b"\xff\x7f", "tagged fields", len(FETCH) - 1, id="16,383 tags in no bytes"),
    pytest.param(FETCH[:-1] + b"\x01\x05\x7f", "tag 5", len(FETCH) + 2, id="a tag longer than the frame"),
]


@pytest.mark.spec("H-02", "H-03", "H-04", "H-05")
@pytest.mark.parametrize(("data", "field", "offset"), READ)
def test_a_failed_read_names_the_field_and_the_byte(data: bytes, field: str, offset: int) -> None:
    for buffer in (data, memoryview(data), bytearray(data)):
        with pytest.raises(ProtocolDecodeError) as failed:
            protocol.decode("FetchResponse", 12, buffer)
        error = failed.value
        assert (error.message, error.version, error.field, error.offset) == (
            "FetchResponse",
            12,
            field,
            offset,
        )
        assert f"FetchResponse version 12 cannot be read: {field} at byte {offset}" in str(error)


@pytest.mark.spec("H-05")
def test_a_known_tag_must_fill_its_bytes() -> None:
    header = (
        b"\x00\x00\x01\x00\x00\x00\x00\x01"  # ApiVersionsResponse: no error, no APIs, not throttled, one tag
    )
    protocol.decode("ApiVersionsResponse", 3, header + b"\x01\x08" + bytes(8))
    for value in (b"\x01\x07" + bytes(7), b"\x01\x09" + bytes(9)):
        with pytest.raises(ProtocolDecodeError) as failed:
            protocol.decode("ApiVersionsResponse", 3, header + value)
        assert failed.value.field == "finalized_features_epoch"


@pytest.mark.spec("H-06")
def test_bytes_after_a_message_are_refused() -> None:
    with pytest.raises(ProtocolDecodeError, match="1 bytes after it") as failed:
        protocol.decode("FetchResponse", 12, FETCH + b"!")
    assert failed.value.offset == len(FETCH)


@pytest.mark.parametrize("version", [-1, 19])
def test_a_version_that_does_not_exist_is_refused(version: int) -> None:
    with pytest.raises(ProtocolDecodeError, match="FetchResponse has versions 0 to 18, not"):
        protocol.decode("FetchResponse", version, FETCH)
    with pytest.raises(ProtocolEncodeError, match="FetchResponse has versions 0 to 18, not"):
        protocol.encode(FetchResponse(), version)


def test_a_name_that_no_message_has_is_refused_with_the_nearest() -> None:
    with pytest.raises(ArgumentError, match=r"no message 'FetchRespones'\. Did you mean FetchResponse\?"):
        protocol.decode("FetchRespones", 12, FETCH)


def join(**fields: object) -> JoinGroupRequest:
    return JoinGroupRequest(**fields)  # type: ignore[arg-type]  # wrong on purpose


WRITTEN = [
    pytest.param(join(group_id=None), 5, "group_id", "no null here", id="null"),
    pytest.param(
        join(session_timeout_ms=2**31), 5, "session_timeout_ms", "2147483648 does not fit int32", id="range"
    ),
    pytest.param(
        join(session_timeout_ms="5"), 5, "session_timeout_ms", "this str does not fit int32", id="type"
    ),
    pytest.param(join(group_id="x" * 32768), 5, "group_id", "does not fit string", id="long string"),
    pytest.param(join(group_id="x" * 32768), 9, "group_id", "does not fit string", id="long compact string"),
    pytest.param(join(group_id="\ud800"), 9, "group_id", "does not fit string", id="half a surrogate pair"),
    pytest.param(join(protocols=3), 9, "protocols", "int instead of a list", id="no list"),
    pytest.param(join(protocols=["range"]), 9, "protocols[0]", "str instead of", id="no struct"),
    pytest.param(
        join(protocols=[JoinGroupRequestProtocol(), JoinGroupRequestProtocol(name=7)]),  # type: ignore[arg-type]
        9,
        "protocols[1].name",
        "7 does not fit string",
        id="nested",
    ),
    pytest.param(
        join(group_instance_id="static"), 4, "group_instance_id", "version 4 does not have it", id="absent"
    ),
    pytest.param(
        MetadataRequest(topics=[MetadataRequestTopic(topic_id=b"short")]),
        12,
        "topics[0].topic_id",
        "uuid",
        id="uuid",
    ),
    pytest.param(
        MetadataRequest(topics=None), 0, "topics", "version 0 has no null here", id="null too early"
    ),
    pytest.param(join(unknown_tags=((1, b""),)), 5, "unknown_tags", "no tagged fields", id="tags too early"),
    pytest.param(join(unknown_tags=((7, b""), (7, b"x"))), 9, "unknown_tags", "tag 7", id="tag twice"),
    pytest.param(join(unknown_tags=((-1, b""),)), 9, "unknown_tags", "tag -1", id="negative tag"),
    pytest.param(join(unknown_tags=(("7", b""),)), 9, "unknown_tags", "tag 7", id="text as a tag"),
    pytest.param(join(unknown_tags=((7, "x"),)), 9, "unknown_tags", "tag 7 holds str", id="text in a tag"),
    pytest.param(
        join(protocols=[JoinGroupRequestProtocol(metadata="x")]),  # type: ignore[arg-type]
        5,
        "protocols[0].metadata",
        "this str does not fit bytes",
        id="text as bytes",
    ),
    pytest.param(
        PushTelemetryRequest(metrics=[1, 2]),  # type: ignore[arg-type]
        0,
        "metrics",
        "this list does not fit bytes",
        id="list as bytes",
    ),
    pytest.param(
        FetchResponse(unknown_tags=((0, b""),)), 16, "unknown_tags", "tag 0", id="known tag as an unknown one"
    ),
]


@pytest.mark.spec("C.1")
@pytest.mark.parametrize(("message", "version", "field", "reason"), WRITTEN)
def test_a_failed_write_names_the_field(message: Message, version: int, field: str, reason: str) -> None:
    with pytest.raises(ProtocolEncodeError) as failed:
        protocol.encode(message, version)
    error = failed.value
    assert (error.message, error.version, error.field) == (message.NAME, version, field)
    assert reason in str(error)


def test_texts_hold_no_values_that_may_be_secret() -> None:
    message = OffsetCommitRequest(group_id="x" * 40000 + "hunter2")
    with pytest.raises(ProtocolEncodeError) as failed:
        protocol.encode(message, 8)
    assert "hunter2" not in str(failed.value)


@pytest.mark.spec("H-02")
@pytest.mark.parametrize("version", range(19))
def test_a_huge_count_allocates_nothing(version: int) -> None:
    from tracemalloc import get_traced_memory, start, stop

    prefix = protocol.encode(FetchResponse(), version)
    count = b"\xff\xff\xff\xff\x07" if version >= 12 else b"\x7f\xff\xff\xff"
    empty = 2 if version >= 12 else 4  # the empty array, and the tags after it
    data = prefix[:-empty] + count + bytes(100)
    start()
    with pytest.raises(ProtocolDecodeError) as failed:
        protocol.decode("FetchResponse", version, data)
    _, peak = get_traced_memory()
    stop()
    assert failed.value.field == "responses"
    assert peak < 64_000

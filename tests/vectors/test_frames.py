"""Whole frames: the size, the header in its version, the body."""

from __future__ import annotations

import csv

import pytest

from kclient import protocol
from kclient.protocol.headers import (
    read_response_header,
    request_frame,
    request_header_version,
    response_header_version,
)
from kclient.protocol.registry import read_message, write_message
from tests.vectors.cases import DATA, Case, by_version, records, tags, vectors

FRAMES = by_version(vectors("frames"))
REQUESTS = {name: cases for name, cases in FRAMES.items() if "Request-" in name}
RESPONSES = {name: cases for name, cases in FRAMES.items() if "Response-" in name}


def parts_of(case: Case) -> tuple[str, int, bytes]:
    """The header's name, its version, and the frame behind its size, which is checked."""
    frame = bytes.fromhex(case["hex"])
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    header = "RequestHeader" if case["message"].endswith("Request") else "ResponseHeader"
    return header, case["header_version"], frame[4:]


def header_tags(case: Case) -> dict[str, dict[int, bytes]]:
    described = case.get("header_unknown_tags")
    return tags([{"path": "", "tags": described}]) if described else {}


@pytest.mark.spec("C.1")
@pytest.mark.parametrize("cases", FRAMES.values(), ids=FRAMES)
def test_java_frames_are_read_and_written_back(cases: list[Case]) -> None:
    for case in cases:
        name, header_version, frame = parts_of(case)
        header, offset = read_message(name, header_version, frame)
        assert protocol.to_json(header, header_version) == case["header"]
        assert protocol.unknown_tags_of(header) == header_tags(case)
        body, end = read_message(case["message"], case["version"], frame, offset)
        assert end == len(frame)
        assert protocol.to_json(body, case["version"]) == case["fields"]
        assert protocol.records_of(body) == records(case)
        written = write_message(header, header_version) + write_message(body, case["version"])
        assert b"".join(written) == frame


@pytest.mark.spec("C.1", "S1-26")
@pytest.mark.parametrize("cases", REQUESTS.values(), ids=REQUESTS)
def test_requests_are_framed_as_java_frames_them(cases: list[Case]) -> None:
    for case in cases:
        if "header_unknown_tags" in case:
            continue  # written back above; a client has none of its own to send
        header = case["header"]
        body = protocol.from_json(case["message"], case["version"], case["fields"], records=records(case))
        frame = request_frame(body, case["version"], header["correlationId"], header["clientId"])
        assert b"".join(frame) == bytes.fromhex(case["hex"])


@pytest.mark.spec("C.1")
@pytest.mark.parametrize("cases", RESPONSES.values(), ids=RESPONSES)
def test_a_response_is_found_after_its_header(cases: list[Case]) -> None:
    for case in cases:
        _, _, frame = parts_of(case)
        correlation_id, offset = read_response_header(case["api_key"], case["version"], memoryview(frame))
        assert correlation_id == case["header"]["correlationId"]
        body, end = read_message(case["message"], case["version"], frame, offset)
        assert (protocol.to_json(body, case["version"]), end) == (case["fields"], len(frame))


@pytest.mark.spec("C.1")
def test_header_versions_are_those_of_java() -> None:
    with (DATA / "header_versions.tsv").open(encoding="ascii") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    assert len(rows) > 200
    for row in rows:
        api_key, version = int(row["api_key"]), int(row["version"])
        ours = request_header_version(api_key, version), response_header_version(api_key, version)
        assert ours == (int(row["request_header_version"]), int(row["response_header_version"])), row


@pytest.mark.spec("C.1")
def test_api_versions_responses_have_header_0_at_every_version() -> None:
    assert [response_header_version(18, version) for version in range(6)] == [0] * 6
    assert [request_header_version(18, version) for version in range(6)] == [1, 1, 1, 2, 2, 2]


def test_the_client_id_of_header_2_keeps_its_int16_length() -> None:
    body = protocol.from_json(
        "ApiVersionsRequest", 3, {"clientSoftwareName": "a", "clientSoftwareVersion": "1"}
    )
    frame = b"".join(request_frame(body, 3, 7, "ab"))
    assert frame[12:16] == b"\x00\x02ab"
    assert frame[16:17] == b"\x00"  # the header's tagged fields


def test_every_frame_was_read() -> None:
    assert sum(map(len, FRAMES.values())) == 662
    assert len(REQUESTS) + len(RESPONSES) == len(FRAMES)

"""`kclient decode`: frames in hex as messages."""

from __future__ import annotations

import io
import json
import sys

import pytest

from kclient.generated.api_versions_request import ApiVersionsRequest
from kclient.generated.api_versions_response import ApiVersion, ApiVersionsResponse
from kclient.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from kclient.generated.sasl_authenticate_request import SaslAuthenticateRequest
from kclient.protocol import encode
from kclient.protocol.headers import request_frame
from tests.cli.support import call

METADATA = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
FRAME = b"".join(request_frame(METADATA, 12, 7, "me"))
PAGE = {
    "request": {"api": "Metadata", "version": 12, "correlationId": 7, "clientId": "me"},
    "message": {
        "topics": [{"topicId": "AAAAAAAAAAAAAAAAAAAAAA", "name": "orders"}],
        "allowAutoTopicCreation": False,
        "includeTopicAuthorizedOperations": False,
    },
}


@pytest.mark.parametrize(
    "words",
    [
        [FRAME.hex()],
        [FRAME[4:].hex()],
        [FRAME.hex(" ", 4)],
        FRAME.hex(" ").split(),
        [FRAME.hex(":").upper()],
    ],
    ids=["with-size", "without", "spaced", "words", "colons"],
)
def test_a_request_says_what_it_is(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "decode", *words)
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["request"] == PAGE["request"]
    assert found["message"]["topics"] == PAGE["message"]["topics"]  # type: ignore[call-overload,index]
    assert len(done.out.splitlines()) > 5
    assert len(call(capsys, "decode", "--json", *words).out.splitlines()) == 1


def test_input_that_is_no_text_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe\n"), encoding="utf-8"))
    done = call(capsys, "decode")
    assert (done.code, done.out) == (2, "")
    assert "these are not bytes in hex" in done.err


@pytest.mark.parametrize("api", ["ApiVersions", "apiversions", "18"])
def test_a_response_needs_its_api_and_version(api: str, capsys: pytest.CaptureFixture[str]) -> None:
    response = ApiVersionsResponse(api_keys=[ApiVersion(api_key=3, min_version=0, max_version=13)])
    frame = (9).to_bytes(4, "big") + encode(response, 3)
    found = json.loads(call(capsys, "decode", "--api", api, "--version", "3", frame.hex()).out)
    assert found["response"] == {"api": "ApiVersions", "version": 3, "correlationId": 9}
    assert found["message"]["apiKeys"] == [{"apiKey": 3, "minVersion": 0, "maxVersion": 13}]


def test_standard_input_has_a_frame_on_each_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = b"".join(request_frame(ApiVersionsRequest(), 0, 1, None))
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{FRAME.hex()}\n\n{other.hex()}\n"))
    assert [one["request"]["api"] for one in call(capsys, "decode", "--json").events] == [
        "Metadata",
        "ApiVersions",
    ]


def test_a_password_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    frame = b"".join(request_frame(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2, 1, None))
    found = json.loads(call(capsys, "decode", frame.hex()).out)
    assert found["message"] == {"authBytes": "***"}


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["xyz"], 2, "these are not bytes in hex"),
        (["0012"], 2, "a request has at least 4 bytes"),
        (["7fff000000000001ffff"], 2, "API key 32767 is none"),
        ([FRAME[4:].hex() + "00"], 6, "1 bytes are left after MetadataRequest"),
        ([FRAME[4:-1].hex()], 6, "cannot be read"),
        (["--api", "Metadata", "00"], 2, "with --api and --version"),
        (["--api", "Metdata", "--version", "1", "00"], 2, "--api Metdata is no API"),
        (["--api", "Metadata", "--version", "99", "00"], 2, "has the versions 0 to"),
        (["--api", "Metadata", "--version", "12", "00"], 6, "cannot be read"),
    ],
)
def test_what_is_no_frame_is_reported(
    words: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call(capsys, "decode", *words)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert "Traceback" not in done.err

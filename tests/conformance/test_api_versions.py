"""ApiVersions: what is advertised, and how a client finds a common version of it."""

from __future__ import annotations

import struct

import pytest

from kclient.embedded.releases import versions_of
from kclient.generated.api_versions_request import ApiVersionsRequest
from kclient.generated.metadata_request import MetadataRequest
from kclient.protocol import decode, errors
from tests.conformance.raw_client import RawClient
from tests.conformance.target import Target

REQUEST = ApiVersionsRequest(client_software_name="conformance", client_software_version="1.0")
API_VERSIONS = 18


@pytest.mark.spec("C.1", "C.2", "B.4.4")
@pytest.mark.api("ApiVersions")
def test_the_served_apis_are_advertised_in_every_version(target: Target, version: int) -> None:
    response = target.ask(REQUEST, version)
    assert (response.error_code, response.throttle_time_ms) == (errors.NONE, 0)
    advertised = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
    expected = versions_of(target.release)
    assert {key: advertised[key] for key in expected} == dict(expected)
    assert len(advertised) == len(response.api_keys)
    if target.embedded:
        assert advertised.keys() == expected.keys()


@pytest.mark.spec("B.4.4")
def test_a_version_too_new_is_answered_in_version_0_with_the_range(
    target: Target, raw_client: RawClient
) -> None:
    raw_client.send_raw(struct.pack(">hhi", API_VERSIONS, 99, 7) + b"\x00\x01x\x00" + b"\x02x\x021\x00")
    frame = raw_client.read_frame()
    assert frame[:4] == struct.pack(">i", 7)
    response = decode("ApiVersionsResponse", 0, frame[4:])
    assert response.error_code == errors.UNSUPPORTED_VERSION
    [row] = response.api_keys
    assert (row.api_key, row.min_version, row.max_version) == (API_VERSIONS, 0, target.newest("ApiVersions"))
    assert raw_client.ask(REQUEST, 0).error_code == errors.NONE  # the connection goes on


@pytest.mark.api("ApiVersions", 3)
@pytest.mark.parametrize(
    ("name", "number"), [("", "1"), ("name", ""), ("two words", "1"), ("name", "1/2"), ("-name", "1")]
)
def test_a_strange_name_of_the_software_is_refused(
    target: Target, version: int, name: str, number: str
) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=number)
    response = target.ask(request, version)
    assert response.error_code == errors.INVALID_REQUEST


@pytest.mark.since("4.4")
@pytest.mark.parametrize(
    ("cluster", "node", "code"),
    [
        ("this", 1, errors.NONE),
        ("this", 2, errors.REBOOTSTRAP_REQUIRED),
        ("another", 1, errors.REBOOTSTRAP_REQUIRED),
        ("", 1, errors.REBOOTSTRAP_REQUIRED),
        ("this", -1, errors.INVALID_REQUEST),
        ("this", -2, errors.REBOOTSTRAP_REQUIRED),
        (None, 1, errors.INVALID_REQUEST),
        (None, -1, errors.NONE),
    ],
)
def test_a_client_that_takes_the_node_for_another_is_notified(
    target: Target, raw_client: RawClient, cluster: str | None, node: int, code: int
) -> None:
    """KIP-1242. The connection goes on, so that older versions of the request still have their response."""
    here = target.ask(MetadataRequest(topics=[])).cluster_id
    request = ApiVersionsRequest("conformance", "1.0", here if cluster == "this" else cluster, node)
    response = raw_client.ask(request, 5)
    assert (response.error_code, bool(response.api_keys)) == (code, code == errors.NONE)
    assert raw_client.ask(request, 4).error_code == errors.NONE


def test_an_unknown_version_of_another_api_ends_the_connection(raw_client: RawClient) -> None:
    raw_client.send_raw(struct.pack(">hhi", 3, 99, 1) + b"\x00\x01x" + b"\x00\x00\x00\x00")
    assert raw_client.closed()


def test_an_unknown_api_ends_the_connection(raw_client: RawClient) -> None:
    raw_client.send_raw(struct.pack(">hhi", 999, 0, 1) + b"\x00\x01x")
    assert raw_client.closed()


def test_a_body_that_is_cut_off_ends_the_connection(raw_client: RawClient) -> None:
    raw_client.send_raw(struct.pack(">hhi", 3, 1, 1) + b"\x00\x01x" + b"\x00\x00\x00\x07")
    assert raw_client.closed()


@pytest.mark.api("Metadata", 1, few=True)
def test_bytes_after_a_request_are_overlooked(raw_client: RawClient, version: int) -> None:
    raw_client.send(MetadataRequest(topics=[]), version, behind=b"\0\0\0")
    assert len(raw_client.receive().brokers) == 1
    assert raw_client.ask(REQUEST, 0).error_code == errors.NONE

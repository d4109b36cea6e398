"""ApiVersions negotiation against a scripted broker, and the choice of a request's version."""

from __future__ import annotations

import asyncio
import struct
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from kclient.errors import ConnectError, VersionError
from kclient.generated.api_versions_request import ApiVersionsRequest
from kclient.generated.api_versions_response import ApiVersion, ApiVersionsResponse
from kclient.generated.fetch_request import FetchRequest
from kclient.network.api_versions import SOFTWARE_NAME, SOFTWARE_VERSION, choose_version
from kclient.network.connection import FIRST_CORRELATION_ID, Connection
from kclient.network.peer import Peer
from tests.network.support import connect
from tests.scripted_broker import On, ScriptedBroker

PEER = Peer("broker", 9092, 1)


def offer(*ranges: tuple[int, int, int]) -> ApiVersionsResponse:
    keys = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in ranges]
    return ApiVersionsResponse(api_keys=keys)


def refusal(*ranges: tuple[int, int, int], attempt: int = 0) -> bytes:
    """UNSUPPORTED_VERSION as a broker writes it: response header 0 and a body of version 0."""
    body = struct.pack(">ihi", FIRST_CORRELATION_ID + attempt, 35, len(ranges))
    body += b"".join(struct.pack(">hhh", *one) for one in ranges)
    return struct.pack(">i", len(body)) + body


def negotiate(*script: On) -> tuple[Connection, Sequence[tuple[int, ApiVersionsRequest]]]:
    """Connect to a peer with this script; the connection and what ApiVersions it saw (version, request)."""

    async def main() -> tuple[Connection, Sequence[tuple[int, ApiVersionsRequest]]]:
        async with ScriptedBroker(*script) as peer:
            connection = await connect(peer)
            connection.close()
            assert len(peer.connections) == 1
            return connection, [(seen.version, seen.message) for seen in peer.requests]

    return asyncio.run(main())


@pytest.mark.spec("B.4.4")
def test_the_newest_version_is_asked_with_the_softwares_name() -> None:
    connection, asked = negotiate(On("ApiVersionsRequest", offer((18, 0, 5), (1, 4, 16))))
    assert connection.offered == {18: (0, 5), 1: (4, 16)}
    assert [version for version, _ in asked] == [5]
    name, version = asked[0][1].client_software_name, asked[0][1].client_software_version
    assert (name, version) == (SOFTWARE_NAME, SOFTWARE_VERSION)
    assert all(part.strip("-.").replace("-", "").replace(".", "").isalnum() for part in (name, version))


def test_the_software_version_is_the_packages() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["version"] == SOFTWARE_VERSION


@pytest.mark.spec("B.4.4")
@pytest.mark.parametrize(
    ("listed", "second"), [([(18, 0, 4)], 4), ([(18, 0, 3)], 3), ([(18, 0, 0)], 0), ([], 0), ([(1, 0, 5)], 0)]
)
def test_a_refused_version_is_asked_again_as_the_refusal_says(
    listed: list[tuple[int, int, int]], second: int
) -> None:
    connection, asked = negotiate(
        On("ApiVersionsRequest", raw=refusal(*listed)), On("ApiVersionsRequest", offer((18, 0, 3)))
    )
    assert [version for version, _ in asked] == [5, second]
    assert connection.offered == {18: (0, 3)}


@pytest.mark.parametrize(
    ("known", "refused", "sent"), [("c", False, ("c", 0)), (None, False, (None, -1)), ("c", True, ("c", 0))]
)
def test_a_broker_learns_which_node_it_is_taken_for(
    known: str | None, refused: bool, sent: tuple[str | None, int]
) -> None:
    """KIP-1242. What an older version cannot say is left out of it."""

    async def main() -> None:
        older = [On("ApiVersionsRequest", offer((18, 0, 4)))]
        script = [On("ApiVersionsRequest", raw=refusal((18, 0, 4))), *older] if refused else older
        async with ScriptedBroker(*script) as peer:
            (await connect(peer, cluster_id=lambda: known)).close()
            [first, *others] = [(one.version, one.message) for one in peer.requests]
            assert (first[0], first[1].cluster_id, first[1].node_id) == (5, *sent)
            assert [(version, one.cluster_id, one.node_id) for version, one in others] == (
                [(4, None, -1)] if refused else []
            )

    asyncio.run(main())


def test_a_broker_that_is_another_one_is_not_connected_to() -> None:
    with pytest.raises(ConnectError, match=r"node 0 at .* is not that node of cluster") as caught:
        negotiate(On("ApiVersionsRequest", ApiVersionsResponse(error_code=129)))
    assert (caught.value.stage, caught.value.retriable, caught.value.node_id) == ("misrouted", True, 0)


@pytest.mark.spec("H-08")
def test_a_broker_that_refuses_every_version_is_given_up() -> None:
    with pytest.raises(VersionError, match="UNSUPPORTED_VERSION") as caught:
        negotiate(
            On("ApiVersionsRequest", raw=refusal((18, 0, 3))),
            On("ApiVersionsRequest", raw=refusal((18, 0, 2), attempt=1)),
        )
    assert caught.value.stage == "versions"


@pytest.mark.spec("H-08")
def test_a_refusal_that_lists_the_refused_version_leads_to_version_0_once() -> None:
    _, asked = negotiate(
        On("ApiVersionsRequest", raw=refusal((18, 0, 5))), On("ApiVersionsRequest", offer((18, 0, 5)))
    )
    assert [version for version, _ in asked] == [5, 0]


@pytest.mark.spec("H-08")
@pytest.mark.parametrize(
    ("response", "problem"),
    [
        (offer((18, 3, 1)), "versions 3 to 1"),
        (offer((18, -1, 4)), "versions -1 to 4"),
        (offer((18, 0, 4), (18, 0, 3)), "listed twice"),
        (offer(), "no API"),
        (ApiVersionsResponse(error_code=42), "INVALID_REQUEST"),
    ],
)
def test_a_response_that_contradicts_itself_is_refused(response: ApiVersionsResponse, problem: str) -> None:
    with pytest.raises(VersionError, match=problem) as caught:
        negotiate(On("ApiVersionsRequest", response))
    assert (caught.value.stage, caught.value.api) == ("versions", "ApiVersions")
    assert not caught.value.retriable


@pytest.mark.spec("H-08", "H-02")
@pytest.mark.parametrize("body", [b"", b"\0", b"\0\0\x7f\xff\xff\xff", b"\0\0\xff\xff\xff\xff\x0f"])
def test_a_response_that_cannot_be_read_is_a_connect_error(body: bytes) -> None:
    raw = struct.pack(">ii", 4 + len(body), FIRST_CORRELATION_ID) + body
    with pytest.raises(ConnectError) as caught:
        negotiate(On("ApiVersionsRequest", raw=raw))
    assert caught.value.stage == "versions"


@pytest.mark.spec("B.4.5")
@pytest.mark.parametrize(
    ("broker", "lowest", "highest", "chosen"),
    [
        ((4, 18), 0, None, FetchRequest.VERSIONS[1]),
        ((0, 11), 0, None, 11),
        ((4, 18), 0, 12, 12),
        ((4, 18), 13, None, FetchRequest.VERSIONS[1]),
        ((12, 12), 0, 12, 12),
    ],
)
def test_the_newest_common_version_is_chosen(
    broker: tuple[int, int], lowest: int, highest: int | None, chosen: int
) -> None:
    assert choose_version(FetchRequest, {1: broker}, PEER, lowest, highest) == chosen


@pytest.mark.spec("B.4.5")
@pytest.mark.parametrize(
    ("offered", "lowest", "highest"),
    [({}, 0, None), ({1: (13, 18)}, 0, 12), ({1: (4, 11)}, 13, None), ({1: (30, 40)}, 0, None)],
)
def test_no_common_version_is_an_error_of_that_request(
    offered: dict[int, tuple[int, int]], lowest: int, highest: int | None
) -> None:
    with pytest.raises(VersionError) as caught:
        choose_version(FetchRequest, offered, PEER, lowest, highest)
    assert (caught.value.api, caught.value.node_id) == ("Fetch", 1)

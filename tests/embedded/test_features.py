"""The features that the embedded cluster advertises are those of a real broker of the release."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kclient import protocol
from kclient.embedded import EmbeddedCluster
from kclient.generated.api_versions_request import ApiVersionsRequest
from tests.embedded.raw_client import RawClient

RECORDINGS = sorted((Path(__file__).parent / "data" / "api_versions").glob("*.json"))
REQUEST = ApiVersionsRequest(client_software_name="test", client_software_version="1")


def answer(release: str, version: int) -> dict[str, Any]:
    async def main() -> Any:
        async with EmbeddedCluster(release=release) as cluster, RawClient(cluster) as raw_client:
            return await raw_client.ask(REQUEST, version)

    return protocol.to_json(asyncio.run(main()), version)


def by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in rows}


@pytest.mark.spec("B.4.4")
@pytest.mark.parametrize("path", RECORDINGS[-4:], ids=lambda path: path.stem)
def test_a_release_has_the_features_of_the_real_broker(path: Path) -> None:
    real = json.loads(path.read_text(encoding="utf-8"))
    ours = answer(path.stem, real.get("version", 4 if path.stem[0] in "34" else 3))
    for kind in ("supportedFeatures", "finalizedFeatures"):
        assert by_name(ours.get(kind, [])) == by_name(real["response"].get(kind, []))


def test_a_feature_that_may_be_off_is_kept_from_clients_that_could_not_read_that() -> None:
    """As a real 4.3.1 does: KAFKA-17011."""
    supported, running = (answer("4.3", 3)[kind] for kind in ("supportedFeatures", "finalizedFeatures"))
    assert list(by_name(supported)) == ["metadata.version"]
    assert by_name(running)["transaction.version"]["maxVersionLevel"] == 2

"""What each release offers, and that the client speaks the newest version that both know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kclient import Consumer
from kclient.generated.api_versions_request import ApiVersionsRequest
from kclient.protocol.errors import NONE
from kclient.protocol.registry import MESSAGES
from tests.brokers.conftest import Broker
from tests.brokers.writing import numbered, produce
from tests.conformance.raw_client import RawClient
from tests.kafka.blocking_consumers import read
from tests.kafka.wire_tap import Tap

RECORDINGS = Path(__file__).parents[1] / "embedded" / "data" / "api_versions"
NOW = 1_700_000_000_000

# Fetch · ListOffsets · Metadata · OffsetFetch · OffsetForLeaderEpoch, the newest version of each; None: not offered.
OFFERED = {
    "0.10.2": (3, 1, 2, 2, None),
    "0.11.0": (5, 2, 4, 3, 0),
    "1.1": (7, 2, 5, 3, 0),
    "2.1": (10, 4, 7, 5, 2),
    "2.3": (11, 5, 8, 5, 3),
    "2.8": (12, 6, 11, 7, 4),
    "3.9": (17, 9, 12, 9, 4),
    "4.3": (18, 11, 13, 10, 4),
    "4.4": (18, 11, 13, 10, 4),
}
FIRST_READ = {
    *(
        "ApiVersions",
        "Metadata",
        "FindCoordinator",
        "JoinGroup",
        "SyncGroup",
        "OffsetFetch",
        "ListOffsets",
        "Fetch",
    )
}
APIS = ("Fetch", "ListOffsets", "Metadata", "OffsetFetch", "OffsetForLeaderEpoch")


def supported_versions(broker: Broker) -> dict[int, tuple[int, int]]:
    """API key → versions, from the broker itself."""
    with RawClient(*broker.kafka.address(1)) as raw_client:
        response = raw_client.ask(ApiVersionsRequest(), 0)
    return {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}


def newest(broker: Broker, api: str) -> int | None:
    """The newest version of an API that the broker supports, None without that API."""
    key = MESSAGES[f"{api}Request"].api_key
    assert key is not None
    return supported_versions(broker).get(key, (0, None))[1]


@pytest.mark.spec("C.2", "C.2.1")
def test_what_a_release_offers(broker: Broker) -> None:
    assert tuple(newest(broker, api) for api in APIS) == OFFERED[str(broker.release)]
    rows = json.loads((RECORDINGS / f"{broker.kafka.version}.json").read_text(encoding="utf-8"))["response"]
    assert supported_versions(broker) == {
        row["apiKey"]: (row["minVersion"], row["maxVersion"]) for row in rows["apiKeys"]
    }


@pytest.mark.spec("B.4.4", "B.4.5", "D-41")
def test_the_newest_common_versions_are_spoken(broker: Broker, fresh_name: str) -> None:
    broker.kafka.create_topic(fresh_name)
    produce(broker, fresh_name, numbered(5, NOW))
    tap = Tap()
    settings: dict[str, Any] = {"group_id": fresh_name, "auto_offset_reset": "earliest", "runtime": tap}
    with Consumer(fresh_name, bootstrap_servers=broker.bootstrap_servers, **settings) as consumer:
        assert len(read(consumer, 5)) == 5
    spoken = {one.api: one.version for one in tap.exchanges}
    assert set(spoken) >= FIRST_READ
    del spoken["ApiVersions"]  # falls back from our newest to what the broker understands
    offered = supported_versions(broker)
    for api, version in spoken.items():
        entry = MESSAGES[f"{api}Request"]
        assert entry.api_key is not None
        assert version == min(offered[entry.api_key][1], entry.highest), api
    assert tap.asked("ApiVersions")[-1].response.error_code == NONE

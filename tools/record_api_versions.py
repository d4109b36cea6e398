"""Record what real brokers advertise: `python -m tools.record_api_versions 2.8.2 4.3.1` (all nine without arguments).

Each release is started in turn and asked for ApiVersions, in the newest version of it that it answers. The files
under tests/embedded/data/api_versions judge `kclient.embedded.releases`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from kclient.generated.api_versions_request import ApiVersionsRequest
from kclient.protocol import decode, to_json
from localkafka import KafkaCluster
from localkafka.releases import RELEASES
from tests.conformance.raw_client import RawClient

FOLDER = Path(__file__).parents[1] / "tests" / "embedded" / "data" / "api_versions"
CORRELATION_ID_BYTES = 4
UNSUPPORTED_VERSION = (35).to_bytes(2, "big")
REQUEST = ApiVersionsRequest(client_software_name="kclient", client_software_version="0")


def record(version: str) -> dict[str, Any]:
    """Start one release and ask it: `version` is that of the answer, `response` the answer as JSON."""
    with KafkaCluster(version) as kafka:
        for newest in range(ApiVersionsRequest.VERSIONS[1], -1, -1):
            with RawClient(*kafka.address(1)) as raw_client:
                raw_client.send(REQUEST, newest)
                body = raw_client.read_frame()[CORRELATION_ID_BYTES:]
            if not body.startswith(UNSUPPORTED_VERSION):  # which is answered in version 0
                answer = decode("ApiVersionsResponse", newest, body)
                return {"kafka": version, "version": newest, "response": to_json(answer, newest)}
    raise SystemExit(f"Kafka {version} answered no version of ApiVersions")


def main(versions: list[str]) -> None:
    """Record each version into a file of its own."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for version in versions or RELEASES:
        text = json.dumps(record(version), indent=1)
        (FOLDER / f"{version}.json").write_text(text + "\n", encoding="utf-8")
        print(version)


if __name__ == "__main__":
    main(sys.argv[1:])

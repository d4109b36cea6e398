"""Fetch Kafka releases into the cache: `python -m localkafka.fetch 4.3.1 2.8.2`, or `4.3.1,2.8.2`, or `all` of them.

Where Java or mvn is missing it says so in one line and ends well, because the tests that need Kafka are then skipped;
with CI=true, where they must run, it ends with 1.
"""

from __future__ import annotations

import os
import sys

from localkafka.errors import LocalKafkaError
from localkafka.jars import fetch, unavailable
from localkafka.releases import RELEASES


def main(versions: list[str]) -> int:
    """Fetch each version; return 0 if all are cached or optional."""
    try:
        for version in chosen(",".join(versions)):
            if reason := unavailable(version):
                print(f"Kafka {version} is left out: {reason}", file=sys.stderr)
                return 1 if os.environ.get("CI") == "true" else 0
            fetch(version)
    except LocalKafkaError as exc:
        print(exc, file=sys.stderr)
        return 1
    return 0


def chosen(text: str) -> list[str]:
    """Parse release names with commas between them, or all. Raise LocalKafkaError for an unknown release."""
    versions = list(RELEASES) if text == "all" else text.split(",")
    if unknown := [version for version in versions if version not in RELEASES]:
        raise LocalKafkaError(f"known are {', '.join(RELEASES)} and all, not {', '.join(unknown)}")
    return versions


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

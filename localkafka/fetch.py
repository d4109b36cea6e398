"""Fetch Kafka releases into the cache: `python -m localkafka.fetch 4.3.1 2.8.2`.

Where Java or mvn is missing it says so in one line and ends well, because the tests that need Kafka are then skipped;
with CI=true, where they must run, it ends with 1.
"""

from __future__ import annotations

import os
import sys

from localkafka.errors import LocalKafkaError
from localkafka.jars import fetch, unavailable


def main(versions: list[str]) -> int:
    """Fetch each version; 0 when all are there or may be missing."""
    for version in versions:
        if reason := unavailable(version):
            print(f"Kafka {version} is left out: {reason}", file=sys.stderr)
            return 1 if os.environ.get("CI") == "true" else 0
        try:
            fetch(version)
        except LocalKafkaError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

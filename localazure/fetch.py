"""Fetch Azurite into the cache: `python -m localazure.fetch`. It ends as `python -m localkafka.fetch` does."""

from __future__ import annotations

import os
import sys

from localazure.server import NAME, fetch, unavailable
from localkafka.errors import LocalKafkaError


def main() -> int:
    """Return 0 if it is cached or optional."""
    if reason := unavailable():
        print(f"{NAME} is left out: {reason}", file=sys.stderr)
        return 1 if os.environ.get("CI") == "true" else 0
    try:
        fetch()
    except LocalKafkaError as exc:
        print(exc, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Fetch S3Proxy into the cache: `python -m locals3.fetch`. It ends as `python -m localkafka.fetch` does."""

from __future__ import annotations

import os
import sys

from localkafka.errors import LocalKafkaError
from locals3.server import ARTIFACT, fetch, unavailable


def main() -> int:
    """Return 0 if it is cached or optional."""
    if reason := unavailable():
        print(f"{ARTIFACT} is left out: {reason}", file=sys.stderr)
        return 1 if os.environ.get("CI") == "true" else 0
    try:
        fetch()
    except LocalKafkaError as exc:
        print(exc, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

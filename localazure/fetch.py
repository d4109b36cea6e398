"""Fetch Azurite into the cache: `python -m localazure.fetch`.

Without npm's registry the tests on Azure are skipped, so that is no failure of what else is fetched.
"""

from __future__ import annotations

import sys

from localazure.server import NAME, fetch
from localkafka.errors import LocalKafkaError


def main() -> None:
    """Fetch it, or say why the tests on Azure will be skipped."""
    try:
        fetch()
    except LocalKafkaError as exc:
        print(f"{exc}\nThe tests on Azure will be skipped, without {NAME}.", file=sys.stderr)


if __name__ == "__main__":
    main()

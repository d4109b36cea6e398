"""Check the lag of a group for a monitoring system: python lag_check.py localhost:9092 GROUP 1000

Exits with 0 up to that many records, with 1 above, and with 2 if the lag is unknown: a group that has committed nothing
has no lag, which is not a lag of 0.
"""

from __future__ import annotations

import sys

from kclient import KclientError
from kclient.group import lag


def main(servers: str, group: str, limit: int) -> int:
    try:
        report = lag(group, bootstrap_servers=servers, timeout=10.0)
    except KclientError as exc:
        print(f"UNKNOWN {group}: {exc}")
        return 2
    if report.total is None or report.unknown:
        print(
            f"UNKNOWN {group}: {report.unknown} of {len(report.partitions)} partitions have no committed offset"
        )
        return 2
    for one in report.partitions:
        print(f"  {one.partition}: {one.lag}")
    print(f"{'OK' if report.total <= limit else 'CRITICAL'} {group}: {report.total} records")
    return 0 if report.total <= limit else 1


if __name__ == "__main__":
    servers, group, limit = sys.argv[1:]
    sys.exit(main(servers, group, int(limit)))

"""kafka-python's producer in a process of its own, where its leftovers do no harm. It reads what to write:

{"bootstrap_servers": …, "topics": {topic: codec}, "rows": [[key, value, timestamp], …]}    keys, values: hex or null
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kclient.records.writer import NewRecord

SECONDS = 60


def produce(bootstrap_servers: str, topics: Mapping[str, str], rows: Sequence[NewRecord]) -> None:
    """Write all rows to partition 0 of each topic, in the topic's codec."""
    wanted = {
        "bootstrap_servers": bootstrap_servers,
        "topics": dict(topics),
        "rows": [[_hex(row.key), _hex(row.value), row.timestamp] for row in rows],
    }
    run = subprocess.run(
        [sys.executable, "-W", "ignore", str(Path(__file__))],
        input=json.dumps(wanted),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _write() -> None:
    from kafka import KafkaProducer

    wanted = json.load(sys.stdin)
    for topic, codec in wanted["topics"].items():
        compression = None if codec == "none" else codec
        source = KafkaProducer(
            bootstrap_servers=wanted["bootstrap_servers"],
            compression_type=compression,
            enable_idempotence=False,  # the old formats have no place for it
            linger_ms=5,
        )
        sent = [
            source.send(
                topic,
                key=None if key is None else bytes.fromhex(key),
                value=None if value is None else bytes.fromhex(value),
                timestamp_ms=timestamp,
                partition=0,
            )
            for key, value, timestamp in wanted["rows"]
        ]
        for future in sent:
            future.get(SECONDS)
        source.close()


if __name__ == "__main__":
    _write()

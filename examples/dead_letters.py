"""Read JSON values with their type: python dead_letters.py localhost:9092 flights GROUP bad.jsonl

A value that is no flight goes to the file, with topic, partition, offset and the reason, before it is skipped. End the
program with Ctrl-C.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

from kclient import Consumer, Headers


@dataclass(frozen=True)
class Flight:
    carrier: str
    delay: int


def flight(topic: str, headers: Headers, data: bytes) -> Flight:
    """Make a flight of a JSON object. What it raises is the reason in the file."""
    found = json.loads(data)
    return Flight(carrier=str(found["carrier"]), delay=int(found["delay"]))


def main(servers: str, topic: str, group: str, path: str) -> None:
    with Consumer(
        topic,
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        value_deserializer=flight,
        on_decode_error="dlq",
        dead_letters=path,
    ) as consumer:
        for record in consumer:
            if record.value is not None:  # null marks a deleted key
                print(record.value.carrier, record.value.delay, flush=True)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        print("closed")

"""What type checkers refuse: each line with `# wrong`, and no other. `test_checkers.py` runs them on this file."""

from __future__ import annotations

import json

from kclient import AsyncConsumer, Consumer, ConsumerSettings, Record, handlers

Consumer("flights", auto_offset_rest="earliest")  # wrong: no such key
AsyncConsumer("flights", auto_offset_rest="earliest")  # wrong: no such key
Consumer("flights", max_poll_records=[1])  # wrong: a list
Consumer("flights", group_id=7)  # wrong: a number
Consumer("flights", value_deserializer=json.loads)  # wrong: takes no topic and no headers
Consumer("flights", value_deserializer=b"")  # wrong: bytes
Consumer("flights", listener=print)  # wrong: no listener
settings: ConsumerSettings = {"grup_id": "delays"}  # wrong: no such key

for record in Consumer("flights", group_id="delays"):
    record.value.decode()  # wrong: a value may be null
    record.offset = 3  # wrong: a record cannot be changed

for decoded in Consumer("flights", value_deserializer=lambda topic, headers, data: len(data)):
    if decoded.value is not None:
        decoded.value.decode()  # wrong: an int


def handle_text(record: Record[bytes, str]) -> None:
    """Handle a record that has been decoded."""


handlers.run(Consumer("flights"), handle_text)  # wrong: its values are bytes

"""What reading costs at least: Fetch over a blocking socket, a CRC of each batch, and one copy of its records.

No client can leave these out and be correct: bytes are received into memory that is used again, the checksum covers
all of them, and records outlive the response, so they are copied (or decompressed) once. There are no columns, no
objects, no event loop, no group. What `to_arrow` costs above it is kclient's own part.
"""

from __future__ import annotations

import socket
from typing import Any, Final

import crc32c
import lz4.frame

from kclient.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kclient.protocol.headers import read_response_header, request_frame
from kclient.protocol.registry import read_message

VERSION: Final = 12  # the last with names of topics
PARTITION_BYTES: Final = 1_048_576
RESPONSE_BYTES: Final = 52_428_800
HEADER: Final = 61  # bytes of a batch before its records
LZ4: Final = 3


def read_bytes(servers: str, topic: str, partitions: int, wanted: int) -> int:
    """Receive, check and copy at least so many records of one broker. Return how many."""
    host, _, port = servers.partition(",")[0].rpartition(":")
    positions, count = [0] * partitions, 0
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        memory = memoryview(bytearray(2 * partitions * PARTITION_BYTES))
        while count < wanted:
            for answer in _fetch(connection, memory, topic, positions).responses[0].partitions:
                number = answer.partition_index
                read, positions[number] = _check_and_copy(
                    memoryview(answer.records or b""), positions[number]
                )
                count += read
    return count


def _fetch(connection: socket.socket, memory: memoryview, topic: str, positions: list[int]) -> Any:
    """Ask for all partitions, and return the response, which lies in `memory` until the next one."""
    wanted = [
        FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=PARTITION_BYTES)
        for number, offset in enumerate(positions)
    ]
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=RESPONSE_BYTES,
        topics=[FetchTopic(topic=topic, partitions=wanted)],
    )
    connection.sendall(b"".join(request_frame(request, VERSION, 0, "floor")))
    _receive(connection, memory[:4])
    frame = memory[: int.from_bytes(memory[:4], "big")]
    _receive(connection, frame)
    _, at = read_response_header(FetchRequest.API_KEY or 1, VERSION, frame)
    return read_message("FetchResponse", VERSION, frame, at)[0]


def _receive(connection: socket.socket, into: memoryview) -> None:
    while into:
        into = into[connection.recv_into(into) :]


def _check_and_copy(data: memoryview, position: int) -> tuple[int, int]:
    """Return the number of records in the whole batches from a position on, and the offset after them."""
    at = count = 0
    while at + HEADER <= len(data):
        end = at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        if end > len(data):
            break
        last = int.from_bytes(data[at : at + 8], "big") + int.from_bytes(data[at + 23 : at + 27], "big")
        if last >= position:
            if crc32c.crc32c(data[at + 21 : end]) != int.from_bytes(data[at + 17 : at + 21], "big"):
                raise SystemExit("a batch is damaged")
            records = data[at + HEADER : end]
            _ = lz4.frame.decompress(records) if data[at + 22] & 7 == LZ4 else bytes(records)
            count += int.from_bytes(data[at + 57 : at + 61], "big")
            position = last + 1
        at = end
    return count, position

"""Captures for tests: the bytes of real connections, and packets made of them by hand, field by field.

A recorder is a runtime: `Consumer(…, runtime=recorder)` talks to its brokers as usual, and `recorder.chunks` has what
went over each connection. `packets` makes TCP segments of it, `pcap` and `pcapng` files of these.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterable, Iterator
from ipaddress import ip_address
from typing import Any

import attrs

from kclient.runtime import Address, Runtime
from tests.kafka.wire_tap import Tap, TappedProtocol

CLIENT, BROKER = "10.0.0.2", "10.0.0.1"
PORT = 9092
FIRST_CLIENT_PORT = 40_000
BEGIN = 1_764_000_000.0
SYN, ACK, PSH = 0x02, 0x10, 0x08
CLIENT_SEQUENCE, BROKER_SEQUENCE = 2**32 - 50, 7  # the first wraps around soon


@attrs.define(eq=False)
class Recorder(Tap):
    """Records the chunks of all connections: the number of the connection, whether the client sent it, the bytes."""

    chunks: list[tuple[int, bool, bytes]] = attrs.field(factory=list, repr=False)
    connections: int = 0

    async def connect(
        self, factory: Callable[[], asyncio.BaseProtocol], address: Address, **options: Any
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        def recorded() -> asyncio.BaseProtocol:
            inner = factory()
            if not isinstance(inner, asyncio.BufferedProtocol):
                return inner
            self.connections += 1
            return RecordedProtocol(inner, self, address.port, self.connections)

        return await Runtime.connect(self, recorded, address, **options)


class RecordedProtocol(TappedProtocol):
    """Notes what passes, before the tap decodes it."""

    def __init__(self, inner: asyncio.BufferedProtocol, recorder: Recorder, port: int, number: int) -> None:
        super().__init__(inner, recorder, port)
        self._recorder, self._number = recorder, number

    def said(self, data: bytes | bytearray | memoryview) -> None:
        self._recorder.chunks.append((self._number, True, bytes(data)))
        super().said(data)

    def buffer_updated(self, nbytes: int) -> None:
        self._recorder.chunks.append((self._number, False, bytes(self._buffer[:nbytes])))
        super().buffer_updated(nbytes)


@attrs.frozen
class Part:
    """One TCP segment."""

    number: int
    from_client: bool
    sequence: int
    flags: int
    payload: bytes = b""
    acknowledged: int = 0

    @property
    def ports(self) -> tuple[int, int]:
        ports = FIRST_CLIENT_PORT + self.number, PORT
        return ports if self.from_client else ports[::-1]

    @property
    def tcp(self) -> bytes:
        """Header and payload; 12 bytes of options, as Linux sends them."""
        header = struct.pack(
            ">HHIIBBHHH", *self.ports, self.sequence, self.acknowledged, 8 << 4, self.flags, 65_535, 0, 0
        )
        return header + b"\x01\x01\x08\x0a" + bytes(8) + self.payload

    def ends(self, client: str = CLIENT, broker: str = BROKER) -> list[bytes]:
        """The addresses of sender and receiver."""
        both = [ip_address(client).packed, ip_address(broker).packed]
        return both if self.from_client else both[::-1]


def packets(
    chunks: Iterable[tuple[int, bool, bytes]], size: int = 1_448, *, with_syn: bool = True
) -> list[Part]:
    """The segments of connections, of at most so many bytes."""
    found: list[Part] = []
    following: dict[tuple[int, bool], int] = {}
    for number, from_client, data in chunks:
        if (number, True) not in following:
            following |= {(number, True): CLIENT_SEQUENCE + 1, (number, False): BROKER_SEQUENCE + 1}
            if with_syn:
                found.append(Part(number, True, CLIENT_SEQUENCE, SYN))
                found.append(
                    Part(number, False, BROKER_SEQUENCE, SYN | ACK, acknowledged=CLIENT_SEQUENCE + 1)
                )
                found.append(Part(number, True, CLIENT_SEQUENCE + 1, ACK, acknowledged=BROKER_SEQUENCE + 1))
        for at in range(0, len(data), size):
            piece, key = data[at : at + size], (number, from_client)
            expects = following[number, not from_client] % 2**32
            found.append(Part(number, from_client, following[key] % 2**32, PSH | ACK, piece, expects))
            following[key] += len(piece)
    return found


# --- packets around segments


def ipv4(part: Part) -> bytes:
    tcp = part.tcp
    fields = (0x45, 0, 20 + len(tcp), 1, 0x4000, 64, 6, 0)
    return struct.pack(">BBHHHBBH", *fields) + b"".join(part.ends()) + tcp


def ipv6(part: Part) -> bytes:
    """With an extension header of 8 bytes before TCP."""
    tcp = part.tcp
    head = struct.pack(">IHBB", 6 << 28, 8 + len(tcp), 60, 64)
    return head + b"".join(part.ends("fe80::2", "fe80::1")) + bytes([6, 0, 1, 4, 0, 0, 0, 0]) + tcp


def ethernet(part: Part) -> bytes:
    return bytes(12) + b"\x08\x00" + ipv4(part)


def vlan(part: Part) -> bytes:
    return bytes(12) + b"\x81\x00\x00\x07\x86\xdd" + ipv6(part)


def null(part: Part) -> bytes:
    """Loopback of macOS on a machine of little-endian order: AF_INET6 is 30 there."""
    return struct.pack("<I", 30) + ipv6(part)


def null4(part: Part) -> bytes:
    return struct.pack("<I", 2) + ipv4(part)


def cooked(part: Part) -> bytes:
    return bytes(14) + b"\x08\x00" + ipv4(part)


def cooked2(part: Part) -> bytes:
    return b"\x86\xdd" + bytes(18) + ipv6(part)


LINKS: dict[str, tuple[int, Callable[[Part], bytes]]] = {
    "ethernet": (1, ethernet),
    "vlan": (1, vlan),
    "null": (0, null),
    "null4": (0, null4),
    "raw": (101, ipv6),
    "cooked": (113, cooked),
    "cooked2": (276, cooked2),
}


# --- files


def times(count: int) -> Iterator[float]:
    """A packet each millisecond."""
    return (BEGIN + number / 1000 for number in range(count))


def pcap(
    parts: list[Part],
    link: str = "ethernet",
    *,
    order: str = "<",
    nanos: bool = False,
    snapshot: int = 1 << 18,
) -> bytes:
    kind, packet = LINKS[link]
    ticks = 1_000_000_000 if nanos else 1_000_000
    magic = 0xA1B23C4D if nanos else 0xA1B2C3D4
    file = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, snapshot, kind)
    for part, time in zip(parts, times(len(parts)), strict=True):
        data = packet(part)
        kept = data[:snapshot]
        seconds = int(time)
        fields = (seconds, round((time - seconds) * ticks), len(kept), len(data))
        file += struct.pack(f"{order}IIII", *fields) + kept
    return file


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + size + body + size


def pcapng(parts: list[Part], links: tuple[str, ...] = ("ethernet", "null"), *, order: str = "<") -> bytes:
    """Several interfaces in turn; the first counts nanoseconds."""
    section = struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)
    file = block(order, 0x0A0D0D0A, section) + block(order, 0x0BAD, b"not of interest")
    for number, link in enumerate(links):
        options = struct.pack(f"{order}HHBxxxHH", 9, 1, 9, 0, 0) if number == 0 else b""
        file += block(order, 1, struct.pack(f"{order}HHI", LINKS[link][0], 0, 0) + options)
    for at, (part, time) in enumerate(zip(parts, times(len(parts)), strict=True)):
        number = at % len(links)
        ticks = round(time * (1_000_000_000 if number == 0 else 1_000_000))
        data = LINKS[links[number]][1](part)
        head = struct.pack(f"{order}IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
        file += block(order, 6, head + data)
    return file

"""The TCP segments of a capture: files of tcpdump, tshark and Wireshark, pcap and pcapng, whole or from a pipe.

    file        pcap: one header, then packets      pcapng: blocks; each interface has a link type of its own
    link        Ethernet (with VLAN tags), loopback of BSD and macOS, Linux cooked (`-i any`) 1 and 2, raw IP
    network     IPv4, IPv6 (with extension headers); fragments are left out
    transport   TCP; everything else is left out

A packet that is shorter than its own headers is left out; one whose end was cut off (`tcpdump -s 96`) says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import ip_address
from struct import Struct, error, unpack_from
from typing import BinaryIO, Final, NamedTuple

import attrs

from kclient.errors import ArgumentError

LARGEST_BLOCK: Final = 16 << 20
"""Bytes of a packet or block. Packets have up to 256 KiB in a capture; a larger claim is a damaged file."""

PCAP: Final = {  # the magic number in the file's bytes: byte order, and ticks a second
    b"\xd4\xc3\xb2\xa1": ("<", 1_000_000),
    b"\xa1\xb2\xc3\xd4": (">", 1_000_000),
    b"\x4d\x3c\xb2\xa1": ("<", 1_000_000_000),
    b"\xa1\xb2\x3c\x4d": (">", 1_000_000_000),
}
PCAPNG: Final = b"\x0a\x0d\x0d\x0a"
ORDERS: Final = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6
RESOLUTION: Final = 9  # the option of an interface that says how long a tick is
MICROSECONDS: Final = 6

IPV4, IPV6 = 0x0800, 0x86DD
TAGGED: Final = (0x8100, 0x88A8)  # a VLAN tag of 4 bytes follows
TCP: Final = 6
EXTENSIONS: Final = (0, 43, 60)  # of IPv6: they say how long they are, and what follows
SYN, FIN, RST, ACK = 0x02, 0x01, 0x04, 0x10


class Segment(NamedTuple):
    """One TCP segment: seconds since 1970, both ends as `host:port`, its place in the stream, and its bytes.

    `acknowledged` is the next byte that its sender expects of the other end, if the flag ACK is set. `cut` is the
    number of bytes at its end that the capture does not have.
    """

    time: float
    source: str
    target: str
    sequence: int
    acknowledged: int
    flags: int
    payload: bytes
    cut: int


class Packet(NamedTuple):
    """What a capture has of one packet, and the link type that says how to read it."""

    time: float
    link: int
    data: bytes


def segments(file: BinaryIO) -> Iterator[Segment]:
    """Yield the TCP segments of a capture, in its order. Raise ArgumentError if it is none, or is damaged."""
    for packet in _packets(file):
        if (link := LINKS.get(packet.link)) is None:
            raise ArgumentError(
                f"the capture is of link type {packet.link}, which is not read here. Ethernet, loopback and "
                "tcpdump -i any are."
            )
        try:
            found = _segment(packet, *link(packet.data))
        except (IndexError, error, ValueError):  # shorter than its own headers say
            continue
        if found is not None:
            yield found


# --- the file


def _packets(file: BinaryIO) -> Iterator[Packet]:
    magic = file.read(4)
    if magic == PCAPNG:
        return _pcapng(file)
    if magic in PCAP:
        return _pcap(file, *PCAP[magic])
    raise ArgumentError(
        "this is no capture: neither pcap nor pcapng. Make one with: tcpdump -w FILE port 9092"
    )


def _pcap(file: BinaryIO, order: str, ticks: int) -> Iterator[Packet]:
    header, link = Struct(f"{order}IIII"), Struct(f"{order}16xI")
    start = file.read(link.size)
    if len(start) < link.size:
        return
    kind = link.unpack(start)[0] & 0xFFFF  # the upper bits say how long a checksum is
    while len(head := file.read(header.size)) == header.size:
        seconds, part, size, _ = header.unpack(head)
        yield Packet(seconds + part / ticks, kind, _exactly(file, size))


@attrs.define
class _Interface:
    link: int
    ticks: int = 10**MICROSECONDS


def _pcapng(file: BinaryIO) -> Iterator[Packet]:
    """Yield the packets of all sections: each block is a type, its size, a body, and the size again."""
    head, order, interfaces = PCAPNG, "", list[_Interface]()
    while len(head) == 4:
        is_section = head == PCAPNG
        start = file.read(8 if is_section else 4)
        if is_section:
            order, interfaces = ORDERS.get(start[4:8], ""), []
        if not order or len(start) < 4:
            break
        (size,) = unpack_from(f"{order}I", start)
        body = start[4:] + _exactly(file, size - 8 - len(start[4:]))
        kind = SECTION if is_section else unpack_from(f"{order}I", head)[0]
        if kind == INTERFACE:
            interfaces.append(_interface(order, body))
        elif kind == PACKET and len(body) >= 20:
            number, high, low, length = unpack_from(f"{order}IIII", body)
            if number < len(interfaces):
                one = interfaces[number]
                yield Packet(((high << 32) | low) / one.ticks, one.link, body[20 : 20 + length])
        head = file.read(4)


def _interface(order: str, body: bytes) -> _Interface:
    """Return the link type of an interface, and its ticks from the options after it: code, size, value."""
    (link,) = unpack_from(f"{order}H", body)
    found, at = _Interface(link), 8
    while at + 4 <= len(body):
        code, size = unpack_from(f"{order}HH", body, at)
        if code == RESOLUTION and size >= 1 and at + 4 < len(body):
            power = body[at + 4]
            found.ticks = 2 ** (power & 0x7F) if power & 0x80 else 10 ** min(power, 18)
        at += 4 + (size + 3) // 4 * 4
    return found


def _exactly(file: BinaryIO, size: int) -> bytes:
    """Read so many bytes, fewer at the end of the file. Raise ArgumentError for a size that no packet has."""
    if not 0 <= size <= LARGEST_BLOCK:
        raise ArgumentError(f"the capture is damaged: a packet or block of {size:,} bytes")
    return file.read(size)


# --- the packet


def _segment(packet: Packet, kind: int, at: int) -> Segment | None:
    """Return the TCP segment in a packet of this protocol, None for anything else. Raise IndexError, struct.error."""
    if kind == IPV4:
        return _ipv4(packet, at)
    return _ipv6(packet, at) if kind == IPV6 else None


def _ethernet(data: bytes) -> tuple[int, int]:
    at = 12
    while (kind := unpack_from(">H", data, at)[0]) in TAGGED:
        at += 4
    return kind, at + 2


def _null(data: bytes) -> tuple[int, int]:
    """Return what BSD's loopback has: the address family, in the byte order of the machine. 2 is IPv4 everywhere."""
    return (IPV4 if 2 in (data[0], data[3]) else IPV6), 4


def _raw(data: bytes) -> tuple[int, int]:
    return (IPV4 if data[0] >> 4 == 4 else IPV6), 0


LINKS: Final[dict[int, Callable[[bytes], tuple[int, int]]]] = {
    0: _null,
    1: _ethernet,
    12: _raw,
    101: _raw,
    108: _null,
    113: lambda data: (unpack_from(">H", data, 14)[0], 16),
    276: lambda data: (unpack_from(">H", data, 0)[0], 20),
}
"""Link type → a function that returns the protocol inside, and where it begins."""


def _ipv4(packet: Packet, at: int) -> Segment | None:
    data = packet.data
    size, fragment = unpack_from(">H2xH", data, at + 2)
    if data[at + 9] != TCP or fragment & 0x3FFF:
        return None
    end = at + size if size else len(data)  # 0: the network card was to cut it into packets
    hosts = str(ip_address(data[at + 12 : at + 16])), str(ip_address(data[at + 16 : at + 20]))
    return _tcp(packet, at + (data[at] & 0x0F) * 4, end, *hosts)


def _ipv6(packet: Packet, at: int) -> Segment | None:
    data = packet.data
    size, following = unpack_from(">HB", data, at + 4)
    hosts = f"[{ip_address(data[at + 8 : at + 24])}]", f"[{ip_address(data[at + 24 : at + 40])}]"
    end, at = (at + 40 + size if size else len(data)), at + 40
    while following in EXTENSIONS:
        following, at = data[at], at + 8 + data[at + 1] * 8
    return _tcp(packet, at, end, *hosts) if following == TCP else None


def _tcp(packet: Packet, at: int, end: int, source: str, target: str) -> Segment:
    from_port, to_port, sequence, acknowledged, offset, flags = unpack_from(">HHIIBB", packet.data, at)
    payload = packet.data[at + (offset >> 4) * 4 : end]
    ends = f"{source}:{from_port}", f"{target}:{to_port}"
    return Segment(
        packet.time, *ends, sequence, acknowledged, flags, payload, cut=max(0, end - len(packet.data))
    )

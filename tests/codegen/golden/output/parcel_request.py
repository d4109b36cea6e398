"""ParcelRequest, versions 0–5: its classes, and one read and write pair per layout.

Generated from schemas/ParcelRequest.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define, field

from kclient.protocol.message import Field, Message, Struct, hidden
from kclient.protocol.primitives import (
    BYTES,
    ZERO_UUID,
    Add,
    Buffer,
    Codec,
    Malformed,
    Unwritable,
    Uuid,
    bool_array,
    compact_length,
    compact_string_length,
    int16_array,
    int32_array,
    left_over,
    new,
    read_compact_strings,
    read_string_length,
    read_strings,
    read_tags,
    read_uvarint,
    read_whole,
    write_tags,
    written,
)

pack_bool: Final = struct.Struct(">?").pack
pack_bool_f8_u2_u4_uuid: Final = struct.Struct(">?dHI16s").pack
pack_i1: Final = struct.Struct(">b").pack
pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4_i2x2: Final = struct.Struct(">ihh").pack
pack_i4_i2x2_i4: Final = struct.Struct(">ihhi").pack
pack_i4x2: Final = struct.Struct(">ii").pack
pack_i8: Final = struct.Struct(">q").pack
pack_i8_bool_f8_u2: Final = struct.Struct(">q?dH").pack
pack_i8_bool_f8_u2_uuid: Final = struct.Struct(">q?dH16s").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_bool_f8_u2_u4_uuid: Final = struct.Struct(">?dHI16s").unpack_from
unpack_bool_u1: Final = struct.Struct(">?B").unpack_from
unpack_i1: Final = struct.Struct(">b").unpack_from
unpack_i1_u1: Final = struct.Struct(">bB").unpack_from
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i2x2_i4: Final = struct.Struct(">ihhi").unpack_from
unpack_i4_i2x2_u1: Final = struct.Struct(">ihhB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from
unpack_i8_bool_f8_u2: Final = struct.Struct(">q?dH").unpack_from
unpack_i8_bool_f8_u2_uuid: Final = struct.Struct(">q?dH16s").unpack_from
unpack_i8_u1: Final = struct.Struct(">qB").unpack_from
unpack_uuid: Final = struct.Struct(">16s").unpack_from


@define(weakref_slot=False)
class Place(Struct):
    """Where something is."""

    street: str | None = None
    floor: int = -1


@define(weakref_slot=False)
class Insurance(Struct):
    """Insurance of ParcelRequest."""

    cents: int = -1


@define(weakref_slot=False)
class Receipt(Struct):
    """Receipt of ParcelRequest."""

    signed: bool = False


@define(weakref_slot=False)
class Parcel(Struct):
    """The parcels, by their number. This description is long enough that it has to be folded in the
    docstring, as most descriptions of real fields are.
    """

    number: int = 0
    the_name_of_the_person_to_whom_the_parcel_goes: int = 0
    the_name_of_the_person_from_whom_the_parcel_comes: int = 0
    letters: bytes | memoryview | None = None
    insurance: Insurance | None = None
    remarks: list[str] | None = Factory(list)
    receipt: Receipt | None = Factory(Receipt)


@define(weakref_slot=False)
class ParcelRequest(Message):
    """Hands parcels over to a depot. An invented message that uses everything the dialect has.

    Attributes:
        clerk: Who hands over; its length stays an int16 in flexible versions.
        shift_ms: Milliseconds since the shift began.
        origin: Where the parcels come from.
        count: A name that the read functions use themselves.
        from_: A keyword of Python, and a "quoted" word with a back\\slash.
        parcels: The parcels, by their number. This description is long enough that it has to be folded in the
            docstring, as most descriptions of real fields are.
    """

    NAME: ClassVar[str] = "ParcelRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 4711
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_SINCE: ClassVar[int | None] = 2

    clerk: str | None = ""
    shift_ms: int = 2147483647
    express: bool = True
    weight: float = 1.5
    lockers: int = 0
    checksum: int = 0
    route_id: Uuid = ZERO_UUID
    origin: Place = Factory(Place)
    detour: Place | None = None
    count: int = 0
    data: bytes = field(default=b"", repr=hidden)
    seal: bytes | None = b""
    from_: list[str] | None = Factory(list)
    stops: list[int] | None = Factory(list)
    flags: list[bool] = Factory(list)
    route_ids: list[Uuid] = Factory(list)
    parcels: list[Parcel] = Factory(list)
    priority: int = 3
    return_id: Uuid = ZERO_UUID
    route: list[Place] = Factory(list)
    label: str | None = "fragile"
    len: list[int] = Factory(list)


# Place in version 0
def read_place_v0(data: Buffer, at: int, size: int) -> tuple[Place, int]:
    message = new(Place)
    message.floor = -1
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("street")
    message.street = str(data[at:end], "utf-8")
    at = end
    return message, at


def write_place_v0(message: Place, add: Add) -> None:
    if message.floor != -1:
        raise Unwritable("floor")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    if message.street is None:
        raise Unwritable("street")
    street = message.street.encode()
    add(pack_i2(len(street)))
    add(street)


# Parcel in version 0
def read_parcel_v0(data: memoryview, at: int, size: int) -> tuple[Parcel, int]:
    message = new(Parcel)
    message.insurance = None
    message.remarks = []
    message.receipt = Receipt()
    message.unknown_tags = ()
    (
        message.number,
        message.the_name_of_the_person_to_whom_the_parcel_goes,
        message.the_name_of_the_person_from_whom_the_parcel_comes,
        length,
    ) = unpack_i4_i2x2_i4(data, at)
    at += 12
    end = at + length
    if not at <= end <= size:
        raise Malformed("letters")
    message.letters = data[at:end]
    at = end
    return message, at


def write_parcel_v0(message: Parcel, add: Add) -> None:
    if message.remarks != []:
        raise Unwritable("remarks")
    if message.receipt != Receipt():
        raise Unwritable("receipt")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    if message.letters is None:
        raise Unwritable("letters")
    letters = message.letters
    add(
        pack_i4_i2x2_i4(
            message.number,
            message.the_name_of_the_person_to_whom_the_parcel_goes,
            message.the_name_of_the_person_from_whom_the_parcel_comes,
            len(letters),
        )
    )
    if not isinstance(letters, BYTES):
        raise Unwritable("letters")
    add(letters)


# ParcelRequest in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ParcelRequest, int]:
    data = memoryview(data)
    message = new(ParcelRequest)
    message.clerk = ""
    message.checksum = 0
    message.route_id = ZERO_UUID
    message.detour = None
    message.seal = b""
    message.flags = []
    message.route_ids = []
    message.priority = 3
    message.return_id = ZERO_UUID
    message.route = []
    message.label = "fragile"
    message.len = []
    message.unknown_tags = ()
    message.shift_ms, message.express, message.weight, message.lockers = unpack_i8_bool_f8_u2(data, at)
    at += 19
    message.origin, at = read_place_v0(data, at, size)
    message.count, length = unpack_i4x2(data, at)
    at += 8
    end = at + length
    if not at <= end <= size:
        raise Malformed("data")
    message.data = bytes(data[at:end])
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 2 <= size - at:
        raise Malformed("from_")
    message.from_, at = read_strings(count, data, at, size)
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 4 <= size - at:
        raise Malformed("stops")
    message.stops = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 12 <= size - at:
        raise Malformed("parcels")
    parcels: list[Parcel] = []
    for _ in range(count):
        parcel, at = read_parcel_v0(data, at, size)
        parcels.append(parcel)
    message.parcels = parcels
    return message, at


def write_v0(message: ParcelRequest, add: Add) -> None:
    if message.detour is not None:
        raise Unwritable("detour")
    if message.route_ids != []:
        raise Unwritable("route_ids")
    if message.return_id != ZERO_UUID:
        raise Unwritable("return_id")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i8_bool_f8_u2(message.shift_ms, message.express, message.weight, message.lockers))
    write_place_v0(message.origin, add)
    data_ = message.data
    add(pack_i4x2(message.count, len(data_)))
    if not isinstance(data_, BYTES):
        raise Unwritable("data")
    add(data_)
    if message.from_ is None:
        raise Unwritable("from_")
    from_ = message.from_
    add(pack_i4(len(from_)))
    for from__item in from_:
        from__item_bytes = from__item.encode()
        add(pack_i2(len(from__item_bytes)))
        add(from__item_bytes)
    if message.stops is None:
        raise Unwritable("stops")
    stops = message.stops
    add(pack_i4(len(stops)))
    add(int32_array[len(stops)].pack(*stops))
    parcels = message.parcels
    add(pack_i4(len(parcels)))
    for parcel in parcels:
        write_parcel_v0(parcel, add)


# Place in version 1
def read_place_v1(data: Buffer, at: int, size: int) -> tuple[Place, int]:
    message = new(Place)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.street = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("street")
        message.street = str(data[at:end], "utf-8")
        at = end
    (message.floor,) = unpack_i1(data, at)
    at += 1
    return message, at


def write_place_v1(message: Place, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    street = message.street
    if street is None:
        add(b"\xff\xff")
    else:
        street_bytes = street.encode()
        add(pack_i2(len(street_bytes)))
        add(street_bytes)
    add(pack_i1(message.floor))


# Parcel in version 1
def read_parcel_v1(data: memoryview, at: int, size: int) -> tuple[Parcel, int]:
    message = new(Parcel)
    message.insurance = None
    message.remarks = []
    message.receipt = Receipt()
    message.unknown_tags = ()
    (
        message.number,
        message.the_name_of_the_person_to_whom_the_parcel_goes,
        message.the_name_of_the_person_from_whom_the_parcel_comes,
        length,
    ) = unpack_i4_i2x2_i4(data, at)
    at += 12
    if length == -1:
        message.letters = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("letters")
        message.letters = data[at:end]
        at = end
    return message, at


def write_parcel_v1(message: Parcel, add: Add) -> None:
    if message.remarks != []:
        raise Unwritable("remarks")
    if message.receipt != Receipt():
        raise Unwritable("receipt")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(
        pack_i4_i2x2(
            message.number,
            message.the_name_of_the_person_to_whom_the_parcel_goes,
            message.the_name_of_the_person_from_whom_the_parcel_comes,
        )
    )
    letters = message.letters
    if letters is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(letters)))
        if not isinstance(letters, BYTES):
            raise Unwritable("letters")
        add(letters)


# ParcelRequest in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[ParcelRequest, int]:
    data = memoryview(data)
    message = new(ParcelRequest)
    message.checksum = 0
    message.route_id = ZERO_UUID
    message.seal = b""
    message.flags = []
    message.route_ids = []
    message.return_id = ZERO_UUID
    message.route = []
    message.label = "fragile"
    message.len = []
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.clerk = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("clerk")
        message.clerk = str(data[at:end], "utf-8")
        at = end
    message.shift_ms, message.express, message.weight, message.lockers = unpack_i8_bool_f8_u2(data, at)
    at += 19
    message.origin, at = read_place_v1(data, at, size)
    (present,) = unpack_i1(data, at)
    at += 1
    if present < 0:
        message.detour = None
    else:
        message.detour, at = read_place_v1(data, at, size)
    message.count, length = unpack_i4x2(data, at)
    at += 8
    end = at + length
    if not at <= end <= size:
        raise Malformed("data")
    message.data = bytes(data[at:end])
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if count == -1:
        message.from_ = None
    else:
        if not 0 <= count * 2 <= size - at:
            raise Malformed("from_")
        message.from_, at = read_strings(count, data, at, size)
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 4 <= size - at:
        raise Malformed("stops")
    message.stops = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 12 <= size - at:
        raise Malformed("parcels")
    parcels: list[Parcel] = []
    for _ in range(count):
        parcel, at = read_parcel_v1(data, at, size)
        parcels.append(parcel)
    message.parcels = parcels
    (message.priority,) = unpack_i1(data, at)
    at += 1
    return message, at


def write_v1(message: ParcelRequest, add: Add) -> None:
    if message.route_ids != []:
        raise Unwritable("route_ids")
    if message.return_id != ZERO_UUID:
        raise Unwritable("return_id")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    clerk = message.clerk
    if clerk is None:
        add(b"\xff\xff")
    else:
        clerk_bytes = clerk.encode()
        add(pack_i2(len(clerk_bytes)))
        add(clerk_bytes)
    add(pack_i8_bool_f8_u2(message.shift_ms, message.express, message.weight, message.lockers))
    write_place_v1(message.origin, add)
    detour = message.detour
    if detour is None:
        add(b"\xff")
    else:
        add(b"\x01")
        write_place_v1(detour, add)
    data_ = message.data
    add(pack_i4x2(message.count, len(data_)))
    if not isinstance(data_, BYTES):
        raise Unwritable("data")
    add(data_)
    from_ = message.from_
    if from_ is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(from_)))
        for from__item in from_:
            from__item_bytes = from__item.encode()
            add(pack_i2(len(from__item_bytes)))
            add(from__item_bytes)
    if message.stops is None:
        raise Unwritable("stops")
    stops = message.stops
    add(pack_i4(len(stops)))
    add(int32_array[len(stops)].pack(*stops))
    parcels = message.parcels
    add(pack_i4(len(parcels)))
    for parcel in parcels:
        write_parcel_v1(parcel, add)
    add(pack_i1(message.priority))


# Place in versions 2–5
def read_place_v2(data: Buffer, at: int, size: int) -> tuple[Place, int]:
    message = new(Place)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.street = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("street")
        message.street = str(data[at:end], "utf-8")
        at = end
    message.floor, tags = unpack_i1_u1(data, at)
    at += 2
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_place_v2(message: Place, add: Add) -> None:
    street = message.street
    if street is None:
        add(b"\x00")
    else:
        street_bytes = street.encode()
        add(compact_string_length[len(street_bytes)])
        add(street_bytes)
    add(pack_i1(message.floor))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# Parcel in version 2
def read_parcel_v2(data: memoryview, at: int, size: int) -> tuple[Parcel, int]:
    message = new(Parcel)
    message.insurance = None
    message.remarks = []
    message.receipt = Receipt()
    message.unknown_tags = ()
    (
        message.number,
        message.the_name_of_the_person_to_whom_the_parcel_goes,
        message.the_name_of_the_person_from_whom_the_parcel_comes,
        length,
    ) = unpack_i4_i2x2_u1(data, at)
    at += 9
    if length > 127:
        length, at = read_uvarint(data, at - 1)
    if length == 0:
        message.letters = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("letters")
        message.letters = data[at:end]
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_parcel_v2(message: Parcel, add: Add) -> None:
    if message.remarks != []:
        raise Unwritable("remarks")
    if message.receipt != Receipt():
        raise Unwritable("receipt")
    add(
        pack_i4_i2x2(
            message.number,
            message.the_name_of_the_person_to_whom_the_parcel_goes,
            message.the_name_of_the_person_from_whom_the_parcel_comes,
        )
    )
    letters = message.letters
    if letters is None:
        add(b"\x00")
    else:
        add(compact_length[len(letters)])
        if not isinstance(letters, BYTES):
            raise Unwritable("letters")
        add(letters)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ParcelRequest in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[ParcelRequest, int]:
    data = memoryview(data)
    message = new(ParcelRequest)
    message.checksum = 0
    message.flags = []
    message.return_id = ZERO_UUID
    message.route = []
    message.label = "fragile"
    message.len = []
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.clerk = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("clerk")
        message.clerk = str(data[at:end], "utf-8")
        at = end
    (
        message.shift_ms,
        message.express,
        message.weight,
        message.lockers,
        message.route_id,
    ) = unpack_i8_bool_f8_u2_uuid(data, at)
    at += 35
    message.origin, at = read_place_v2(data, at, size)
    (present,) = unpack_i1(data, at)
    at += 1
    if present < 0:
        message.detour = None
    else:
        message.detour, at = read_place_v2(data, at, size)
    message.count, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_uvarint(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("data")
    message.data = bytes(data[at:end])
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_uvarint(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("seal")
    message.seal = bytes(data[at:end])
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.from_ = None
    else:
        count -= 1
        if not 0 <= count <= size - at:
            raise Malformed("from_")
        message.from_, at = read_compact_strings(count, data, at, size)
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.stops = None
    else:
        count -= 1
        if not 0 <= count * 4 <= size - at:
            raise Malformed("stops")
        message.stops = list(int32_array[count].unpack_from(data, at))
        at += 4 * count
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 16 <= size - at:
        raise Malformed("route_ids")
    end = at + 16 * count
    message.route_ids = [bytes(data[start : start + 16]) for start in range(at, end, 16)]
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 10 <= size - at:
        raise Malformed("parcels")
    parcels: list[Parcel] = []
    for _ in range(count):
        parcel, at = read_parcel_v2(data, at, size)
        parcels.append(parcel)
    message.parcels = parcels
    message.priority, tags = unpack_i1_u1(data, at)
    at += 2
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v2(message: ParcelRequest, add: Add) -> None:
    if message.return_id != ZERO_UUID:
        raise Unwritable("return_id")
    clerk = message.clerk
    if clerk is None:
        add(b"\xff\xff")
    else:
        clerk_bytes = clerk.encode()
        add(pack_i2(len(clerk_bytes)))
        add(clerk_bytes)
    if len(message.route_id) != 16:
        raise Unwritable("route_id")
    add(
        pack_i8_bool_f8_u2_uuid(
            message.shift_ms,
            message.express,
            message.weight,
            message.lockers,
            message.route_id,
        )
    )
    write_place_v2(message.origin, add)
    detour = message.detour
    if detour is None:
        add(b"\xff")
    else:
        add(b"\x01")
        write_place_v2(detour, add)
    add(pack_i4(message.count))
    data_ = message.data
    add(compact_length[len(data_)])
    if not isinstance(data_, BYTES):
        raise Unwritable("data")
    add(data_)
    if message.seal is None:
        raise Unwritable("seal")
    seal = message.seal
    add(compact_length[len(seal)])
    if not isinstance(seal, BYTES):
        raise Unwritable("seal")
    add(seal)
    from_ = message.from_
    if from_ is None:
        add(b"\x00")
    else:
        add(compact_length[len(from_)])
        for from__item in from_:
            from__item_bytes = from__item.encode()
            add(compact_string_length[len(from__item_bytes)])
            add(from__item_bytes)
    stops = message.stops
    if stops is None:
        add(b"\x00")
    else:
        add(compact_length[len(stops)])
        add(int32_array[len(stops)].pack(*stops))
    route_ids = message.route_ids
    add(compact_length[len(route_ids)])
    for route_id in route_ids:
        if len(route_id) != 16:
            raise Unwritable("route_ids")
        add(pack_uuid(route_id))
    parcels = message.parcels
    add(compact_length[len(parcels)])
    for parcel in parcels:
        write_parcel_v2(parcel, add)
    add(pack_i1(message.priority))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# Insurance in versions 3–5
def read_insurance_v3(data: Buffer, at: int, size: int) -> tuple[Insurance, int]:
    message = new(Insurance)
    message.unknown_tags = ()
    message.cents, tags = unpack_i8_u1(data, at)
    at += 9
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_insurance_v3(message: Insurance, add: Add) -> None:
    add(pack_i8(message.cents))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# Receipt in versions 3–5
def read_receipt_v3(data: Buffer, at: int, size: int) -> tuple[Receipt, int]:
    message = new(Receipt)
    message.unknown_tags = ()
    message.signed, tags = unpack_bool_u1(data, at)
    at += 2
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_receipt_v3(message: Receipt, add: Add) -> None:
    add(pack_bool(message.signed))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


def read_parcel_receipt_tag_v3(data: Buffer, at: int, size: int) -> tuple[Receipt | None, int]:
    value: Receipt | None
    (present,) = unpack_i1(data, at)
    at += 1
    if present == 0:
        value = None
    else:
        value, at = read_receipt_v3(data, at, size)
    return value, at


def write_parcel_receipt_tag_v3(value: Receipt | None, add: Add) -> None:
    receipt = value
    if receipt is None:
        add(b"\x00")
    else:
        add(b"\x01")
        write_receipt_v3(receipt, add)


def read_parcel_remarks_tag_v3(data: Buffer, at: int, size: int) -> tuple[list[str] | None, int]:
    value: list[str] | None
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        value = None
    else:
        count -= 1
        if not 0 <= count <= size - at:
            raise Malformed("remarks")
        value, at = read_compact_strings(count, data, at, size)
    return value, at


def write_parcel_remarks_tag_v3(value: list[str] | None, add: Add) -> None:
    remarks = value
    if remarks is None:
        add(b"\x00")
    else:
        add(compact_length[len(remarks)])
        for remark in remarks:
            remark_bytes = remark.encode()
            add(compact_string_length[len(remark_bytes)])
            add(remark_bytes)


# Parcel in versions 3–5
def read_parcel_v3(data: memoryview, at: int, size: int) -> tuple[Parcel, int]:
    message = new(Parcel)
    message.insurance = None
    message.remarks = []
    message.receipt = Receipt()
    message.unknown_tags = ()
    (
        message.number,
        message.the_name_of_the_person_to_whom_the_parcel_goes,
        message.the_name_of_the_person_from_whom_the_parcel_comes,
        length,
    ) = unpack_i4_i2x2_u1(data, at)
    at += 9
    if length > 127:
        length, at = read_uvarint(data, at - 1)
    if length == 0:
        message.letters = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("letters")
        message.letters = data[at:end]
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.insurance = read_whole(read_insurance_v3, found.pop(0))
        if 1 in found:
            message.receipt = read_whole(read_parcel_receipt_tag_v3, found.pop(1))
        if 2 in found:
            message.remarks = read_whole(read_parcel_remarks_tag_v3, found.pop(2))
        message.unknown_tags = left_over(found)
    return message, at


def write_parcel_v3(message: Parcel, add: Add) -> None:
    add(
        pack_i4_i2x2(
            message.number,
            message.the_name_of_the_person_to_whom_the_parcel_goes,
            message.the_name_of_the_person_from_whom_the_parcel_comes,
        )
    )
    letters = message.letters
    if letters is None:
        add(b"\x00")
    else:
        add(compact_length[len(letters)])
        if not isinstance(letters, BYTES):
            raise Unwritable("letters")
        add(letters)
    tags: dict[int, bytes] = {}
    if message.insurance is not None and message.insurance != Insurance():
        tags[0] = written(write_insurance_v3, message.insurance)
    if message.receipt != Receipt():
        tags[1] = written(write_parcel_receipt_tag_v3, message.receipt)
    if message.remarks != []:
        tags[2] = written(write_parcel_remarks_tag_v3, message.remarks)
    if tags or message.unknown_tags:
        write_tags((0, 1, 2), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


def read_priority_tag_v3(data: Buffer, at: int, size: int) -> tuple[int, int]:
    value: int
    (value,) = unpack_i1(data, at)
    at += 1
    return value, at


def write_priority_tag_v3(value: int, add: Add) -> None:
    add(pack_i1(value))


def read_route_tag_v3(data: Buffer, at: int, size: int) -> tuple[list[Place], int]:
    value: list[Place]
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("route")
    route: list[Place] = []
    for _ in range(count):
        route_item, at = read_place_v2(data, at, size)
        route.append(route_item)
    value = route
    return value, at


def write_route_tag_v3(value: list[Place], add: Add) -> None:
    route = value
    add(compact_length[len(route)])
    for route_item in route:
        write_place_v2(route_item, add)


def read_label_tag_v3(data: Buffer, at: int, size: int) -> tuple[str | None, int]:
    value: str | None
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        value = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("label")
        value = str(data[at:end], "utf-8")
        at = end
    return value, at


def write_label_tag_v3(value: str | None, add: Add) -> None:
    label = value
    if label is None:
        add(b"\x00")
    else:
        label_bytes = label.encode()
        add(compact_string_length[len(label_bytes)])
        add(label_bytes)


def read_len_tag_v3(data: Buffer, at: int, size: int) -> tuple[list[int], int]:
    value: list[int]
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 2 <= size - at:
        raise Malformed("len")
    value = list(int16_array[count].unpack_from(data, at))
    at += 2 * count
    return value, at


def write_len_tag_v3(value: list[int], add: Add) -> None:
    len_ = value
    add(compact_length[len(len_)])
    add(int16_array[len(len_)].pack(*len_))


# ParcelRequest in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[ParcelRequest, int]:
    data = memoryview(data)
    message = new(ParcelRequest)
    message.shift_ms = 2147483647
    message.priority = 3
    message.return_id = ZERO_UUID
    message.route = []
    message.label = "fragile"
    message.len = []
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.clerk = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("clerk")
        message.clerk = str(data[at:end], "utf-8")
        at = end
    (
        message.express,
        message.weight,
        message.lockers,
        message.checksum,
        message.route_id,
    ) = unpack_bool_f8_u2_u4_uuid(data, at)
    at += 31
    message.origin, at = read_place_v2(data, at, size)
    (present,) = unpack_i1(data, at)
    at += 1
    if present < 0:
        message.detour = None
    else:
        message.detour, at = read_place_v2(data, at, size)
    message.count, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_uvarint(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("data")
    message.data = bytes(data[at:end])
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_uvarint(data, at - 1)
    if length == 0:
        message.seal = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("seal")
        message.seal = bytes(data[at:end])
        at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.from_ = None
    else:
        count -= 1
        if not 0 <= count <= size - at:
            raise Malformed("from_")
        message.from_, at = read_compact_strings(count, data, at, size)
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.stops = None
    else:
        count -= 1
        if not 0 <= count * 4 <= size - at:
            raise Malformed("stops")
        message.stops = list(int32_array[count].unpack_from(data, at))
        at += 4 * count
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("flags")
    message.flags = list(bool_array[count].unpack_from(data, at))
    at += count
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 16 <= size - at:
        raise Malformed("route_ids")
    end = at + 16 * count
    message.route_ids = [bytes(data[start : start + 16]) for start in range(at, end, 16)]
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 10 <= size - at:
        raise Malformed("parcels")
    parcels: list[Parcel] = []
    for _ in range(count):
        parcel, at = read_parcel_v3(data, at, size)
        parcels.append(parcel)
    message.parcels = parcels
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 5 in found:
            message.priority = read_whole(read_priority_tag_v3, found.pop(5))
        if 8 in found:
            message.route = read_whole(read_route_tag_v3, found.pop(8))
        if 9 in found:
            message.label = read_whole(read_label_tag_v3, found.pop(9))
        if 10 in found:
            message.len = read_whole(read_len_tag_v3, found.pop(10))
        message.unknown_tags = left_over(found)
    return message, at


def write_v3(message: ParcelRequest, add: Add) -> None:
    if message.shift_ms != 2147483647:
        raise Unwritable("shift_ms")
    if message.return_id != ZERO_UUID:
        raise Unwritable("return_id")
    clerk = message.clerk
    if clerk is None:
        add(b"\xff\xff")
    else:
        clerk_bytes = clerk.encode()
        add(pack_i2(len(clerk_bytes)))
        add(clerk_bytes)
    if len(message.route_id) != 16:
        raise Unwritable("route_id")
    add(
        pack_bool_f8_u2_u4_uuid(
            message.express,
            message.weight,
            message.lockers,
            message.checksum,
            message.route_id,
        )
    )
    write_place_v2(message.origin, add)
    detour = message.detour
    if detour is None:
        add(b"\xff")
    else:
        add(b"\x01")
        write_place_v2(detour, add)
    add(pack_i4(message.count))
    data_ = message.data
    add(compact_length[len(data_)])
    if not isinstance(data_, BYTES):
        raise Unwritable("data")
    add(data_)
    seal = message.seal
    if seal is None:
        add(b"\x00")
    else:
        add(compact_length[len(seal)])
        if not isinstance(seal, BYTES):
            raise Unwritable("seal")
        add(seal)
    from_ = message.from_
    if from_ is None:
        add(b"\x00")
    else:
        add(compact_length[len(from_)])
        for from__item in from_:
            from__item_bytes = from__item.encode()
            add(compact_string_length[len(from__item_bytes)])
            add(from__item_bytes)
    stops = message.stops
    if stops is None:
        add(b"\x00")
    else:
        add(compact_length[len(stops)])
        add(int32_array[len(stops)].pack(*stops))
    flags = message.flags
    add(compact_length[len(flags)])
    add(bool_array[len(flags)].pack(*flags))
    route_ids = message.route_ids
    add(compact_length[len(route_ids)])
    for route_id in route_ids:
        if len(route_id) != 16:
            raise Unwritable("route_ids")
        add(pack_uuid(route_id))
    parcels = message.parcels
    add(compact_length[len(parcels)])
    for parcel in parcels:
        write_parcel_v3(parcel, add)
    tags: dict[int, bytes] = {}
    if message.priority != 3:
        tags[5] = written(write_priority_tag_v3, message.priority)
    if message.route != []:
        tags[8] = written(write_route_tag_v3, message.route)
    if message.label != "fragile":
        tags[9] = written(write_label_tag_v3, message.label)
    if message.len != []:
        tags[10] = written(write_len_tag_v3, message.len)
    if tags or message.unknown_tags:
        write_tags((5, 8, 9, 10), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


def read_priority_tag_v4(data: Buffer, at: int, size: int) -> tuple[int, int]:
    value: int
    (value,) = unpack_i1(data, at)
    at += 1
    return value, at


def write_priority_tag_v4(value: int, add: Add) -> None:
    add(pack_i1(value))


def read_return_id_tag_v4(data: Buffer, at: int, size: int) -> tuple[Uuid, int]:
    value: Uuid
    (value,) = unpack_uuid(data, at)
    at += 16
    return value, at


def write_return_id_tag_v4(value: Uuid, add: Add) -> None:
    if len(value) != 16:
        raise Unwritable("return_id")
    add(pack_uuid(value))


def read_route_tag_v4(data: Buffer, at: int, size: int) -> tuple[list[Place], int]:
    value: list[Place]
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("route")
    route: list[Place] = []
    for _ in range(count):
        route_item, at = read_place_v2(data, at, size)
        route.append(route_item)
    value = route
    return value, at


def write_route_tag_v4(value: list[Place], add: Add) -> None:
    route = value
    add(compact_length[len(route)])
    for route_item in route:
        write_place_v2(route_item, add)


def read_label_tag_v4(data: Buffer, at: int, size: int) -> tuple[str | None, int]:
    value: str | None
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        value = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("label")
        value = str(data[at:end], "utf-8")
        at = end
    return value, at


def write_label_tag_v4(value: str | None, add: Add) -> None:
    label = value
    if label is None:
        add(b"\x00")
    else:
        label_bytes = label.encode()
        add(compact_string_length[len(label_bytes)])
        add(label_bytes)


def read_len_tag_v4(data: Buffer, at: int, size: int) -> tuple[list[int], int]:
    value: list[int]
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 2 <= size - at:
        raise Malformed("len")
    value = list(int16_array[count].unpack_from(data, at))
    at += 2 * count
    return value, at


def write_len_tag_v4(value: list[int], add: Add) -> None:
    len_ = value
    add(compact_length[len(len_)])
    add(int16_array[len(len_)].pack(*len_))


# ParcelRequest in versions 4–5
def read_v4(data: Buffer, at: int, size: int) -> tuple[ParcelRequest, int]:
    data = memoryview(data)
    message = new(ParcelRequest)
    message.shift_ms = 2147483647
    message.priority = 3
    message.return_id = ZERO_UUID
    message.route = []
    message.label = "fragile"
    message.len = []
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.clerk = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("clerk")
        message.clerk = str(data[at:end], "utf-8")
        at = end
    (
        message.express,
        message.weight,
        message.lockers,
        message.checksum,
        message.route_id,
    ) = unpack_bool_f8_u2_u4_uuid(data, at)
    at += 31
    message.origin, at = read_place_v2(data, at, size)
    (present,) = unpack_i1(data, at)
    at += 1
    if present < 0:
        message.detour = None
    else:
        message.detour, at = read_place_v2(data, at, size)
    message.count, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_uvarint(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("data")
    message.data = bytes(data[at:end])
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_uvarint(data, at - 1)
    if length == 0:
        message.seal = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("seal")
        message.seal = bytes(data[at:end])
        at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("from_")
    message.from_, at = read_compact_strings(count, data, at, size)
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.stops = None
    else:
        count -= 1
        if not 0 <= count * 4 <= size - at:
            raise Malformed("stops")
        message.stops = list(int32_array[count].unpack_from(data, at))
        at += 4 * count
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("flags")
    message.flags = list(bool_array[count].unpack_from(data, at))
    at += count
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 16 <= size - at:
        raise Malformed("route_ids")
    end = at + 16 * count
    message.route_ids = [bytes(data[start : start + 16]) for start in range(at, end, 16)]
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 10 <= size - at:
        raise Malformed("parcels")
    parcels: list[Parcel] = []
    for _ in range(count):
        parcel, at = read_parcel_v3(data, at, size)
        parcels.append(parcel)
    message.parcels = parcels
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 5 in found:
            message.priority = read_whole(read_priority_tag_v4, found.pop(5))
        if 7 in found:
            message.return_id = read_whole(read_return_id_tag_v4, found.pop(7))
        if 8 in found:
            message.route = read_whole(read_route_tag_v4, found.pop(8))
        if 9 in found:
            message.label = read_whole(read_label_tag_v4, found.pop(9))
        if 10 in found:
            message.len = read_whole(read_len_tag_v4, found.pop(10))
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: ParcelRequest, add: Add) -> None:
    if message.shift_ms != 2147483647:
        raise Unwritable("shift_ms")
    clerk = message.clerk
    if clerk is None:
        add(b"\xff\xff")
    else:
        clerk_bytes = clerk.encode()
        add(pack_i2(len(clerk_bytes)))
        add(clerk_bytes)
    if len(message.route_id) != 16:
        raise Unwritable("route_id")
    add(
        pack_bool_f8_u2_u4_uuid(
            message.express,
            message.weight,
            message.lockers,
            message.checksum,
            message.route_id,
        )
    )
    write_place_v2(message.origin, add)
    detour = message.detour
    if detour is None:
        add(b"\xff")
    else:
        add(b"\x01")
        write_place_v2(detour, add)
    add(pack_i4(message.count))
    data_ = message.data
    add(compact_length[len(data_)])
    if not isinstance(data_, BYTES):
        raise Unwritable("data")
    add(data_)
    seal = message.seal
    if seal is None:
        add(b"\x00")
    else:
        add(compact_length[len(seal)])
        if not isinstance(seal, BYTES):
            raise Unwritable("seal")
        add(seal)
    if message.from_ is None:
        raise Unwritable("from_")
    from_ = message.from_
    add(compact_length[len(from_)])
    for from__item in from_:
        from__item_bytes = from__item.encode()
        add(compact_string_length[len(from__item_bytes)])
        add(from__item_bytes)
    stops = message.stops
    if stops is None:
        add(b"\x00")
    else:
        add(compact_length[len(stops)])
        add(int32_array[len(stops)].pack(*stops))
    flags = message.flags
    add(compact_length[len(flags)])
    add(bool_array[len(flags)].pack(*flags))
    route_ids = message.route_ids
    add(compact_length[len(route_ids)])
    for route_id in route_ids:
        if len(route_id) != 16:
            raise Unwritable("route_ids")
        add(pack_uuid(route_id))
    parcels = message.parcels
    add(compact_length[len(parcels)])
    for parcel in parcels:
        write_parcel_v3(parcel, add)
    tags: dict[int, bytes] = {}
    if message.priority != 3:
        tags[5] = written(write_priority_tag_v4, message.priority)
    if message.return_id != ZERO_UUID:
        tags[7] = written(write_return_id_tag_v4, message.return_id)
    if message.route != []:
        tags[8] = written(write_route_tag_v4, message.route)
    if message.label != "fragile":
        tags[9] = written(write_label_tag_v4, message.label)
    if message.len != []:
        tags[10] = written(write_len_tag_v4, message.len)
    if tags or message.unknown_tags:
        write_tags((5, 7, 8, 9, 10), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ParcelRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v2, write_v2),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
    5: (read_v4, write_v4),
}

# what JSON and error messages know of the fields
Place.FIELDS = (
    Field("street", "street", "string", (0, 5), nullable=(1, 5)),
    Field("floor", "floor", "int8", (1, 5)),
)
Insurance.FIELDS = (Field("cents", "cents", "int64", (3, 5)),)
Receipt.FIELDS = (Field("signed", "signed", "bool", (3, 5)),)
Parcel.FIELDS = (
    Field("number", "number", "int32", (0, 5)),
    Field(
        "the_name_of_the_person_to_whom_the_parcel_goes",
        "theNameOfThePersonToWhomTheParcelGoes",
        "int16",
        (0, 5),
    ),
    Field(
        "the_name_of_the_person_from_whom_the_parcel_comes",
        "theNameOfThePersonFromWhomTheParcelComes",
        "int16",
        (0, 5),
    ),
    Field("letters", "letters", "records", (0, 5), nullable=(1, 5)),
    Field(
        "insurance",
        "insurance",
        "Insurance",
        (3, 5),
        tagged=(3, 5),
        tag=0,
        struct=Insurance,
        ignorable=True,
    ),
    Field("remarks", "remarks", "[]string", (3, 5), nullable=(3, 5), tagged=(3, 5), tag=2),
    Field("receipt", "receipt", "Receipt", (3, 5), nullable=(3, 5), tagged=(3, 5), tag=1, struct=Receipt),
)
ParcelRequest.FIELDS = (
    Field("clerk", "clerk", "string", (1, 5), nullable=(1, 5), ignorable=True, never_compact=True),
    Field("shift_ms", "shiftMs", "int64", (0, 2)),
    Field("express", "express", "bool", (0, 5)),
    Field("weight", "weight", "float64", (0, 5)),
    Field("lockers", "lockers", "uint16", (0, 5), ignorable=True),
    Field("checksum", "checksum", "uint32", (3, 5), ignorable=True),
    Field("route_id", "routeId", "uuid", (2, 5), ignorable=True),
    Field("origin", "origin", "Place", (0, 5), struct=Place),
    Field("detour", "detour", "Place", (1, 5), nullable=(1, 5), struct=Place),
    Field("count", "count", "int32", (0, 5)),
    Field("data", "data", "bytes", (0, 5)),
    Field("seal", "seal", "bytes", (2, 5), nullable=(3, 5), ignorable=True),
    Field("from_", "from", "[]string", (0, 5), nullable=(1, 3)),
    Field("stops", "stops", "[]int32", (0, 5), nullable=(2, 5)),
    Field("flags", "flags", "[]bool", (3, 5), ignorable=True),
    Field("route_ids", "routeIds", "[]uuid", (2, 5)),
    Field("parcels", "parcels", "[]Parcel", (0, 5), struct=Parcel),
    Field("priority", "priority", "int8", (1, 5), tagged=(3, 5), tag=5, ignorable=True),
    Field("return_id", "returnId", "uuid", (4, 5), tagged=(4, 5), tag=7),
    Field("route", "route", "[]Place", (3, 5), tagged=(3, 5), tag=8, struct=Place, ignorable=True),
    Field("label", "label", "string", (3, 5), nullable=(3, 5), tagged=(3, 5), tag=9, ignorable=True),
    Field("len", "len", "[]int16", (3, 5), tagged=(3, 5), tag=10, ignorable=True),
)

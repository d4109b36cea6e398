"""TransactionLogKey, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/TransactionLogKey.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import define

from kclient.protocol.message import Field, Message
from kclient.protocol.primitives import (
    Add,
    Buffer,
    Codec,
    Malformed,
    Unwritable,
    new,
)

pack_i2: Final = struct.Struct(">h").pack
unpack_i2: Final = struct.Struct(">h").unpack_from


@define(weakref_slot=False)
class TransactionLogKey(Message):
    """Key of a record of __transaction_state, after an int16 version. A null value behind it means that the
    id expired.

    Attributes:
        transactional_id: The id that its producer calls itself by.
    """

    NAME: ClassVar[str] = "TransactionLogKey"
    TYPE: ClassVar[str] = "data"
    API_KEY: ClassVar[int | None] = None
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = None

    transactional_id: str = ""


# TransactionLogKey in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[TransactionLogKey, int]:
    message = new(TransactionLogKey)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("transactional_id")
    message.transactional_id = str(data[at:end], "utf-8")
    at = end
    return message, at


def write_v0(message: TransactionLogKey, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    transactional_id = message.transactional_id.encode()
    add(pack_i2(len(transactional_id)))
    add(transactional_id)


# version → its layout's pair
CODECS: dict[int, Codec[TransactionLogKey]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
TransactionLogKey.FIELDS = (Field("transactional_id", "transactionalId", "string", (0, 0)),)

"""EndTxnMarker, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/EndTxnMarker.json by `python -m codegen`; edits here are lost.
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
    Unwritable,
    new,
)

pack_i4: Final = struct.Struct(">i").pack
unpack_i4: Final = struct.Struct(">i").unpack_from


@define(weakref_slot=False)
class EndTxnMarker(Message):
    """Value of a control record that ends a transaction, after an int16 version.

    Attributes:
        coordinator_epoch: Epoch of the transaction coordinator that wrote the marker, so that a deposed one
            is refused.
    """

    NAME: ClassVar[str] = "EndTxnMarker"
    TYPE: ClassVar[str] = "data"
    API_KEY: ClassVar[int | None] = None
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = None

    coordinator_epoch: int = 0


# EndTxnMarker in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[EndTxnMarker, int]:
    message = new(EndTxnMarker)
    message.unknown_tags = ()
    (message.coordinator_epoch,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_v0(message: EndTxnMarker, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4(message.coordinator_epoch))


# version → its layout's pair
CODECS: dict[int, Codec[EndTxnMarker]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
EndTxnMarker.FIELDS = (Field("coordinator_epoch", "coordinatorEpoch", "int32", (0, 0)),)

"""DepotKey, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/DepotKey.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import define

from kclient.protocol.message import Message
from kclient.protocol.primitives import (
    Add,
    Buffer,
    Codec,
    Unwritable,
    new,
)


@define(weakref_slot=False)
class DepotKey(Message):
    """DepotKey, versions 0-0."""

    NAME: ClassVar[str] = "DepotKey"
    TYPE: ClassVar[str] = "data"
    API_KEY: ClassVar[int | None] = None
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = None


# DepotKey in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[DepotKey, int]:
    message = new(DepotKey)
    message.unknown_tags = ()
    return message, at


def write_v0(message: DepotKey, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")


# version → its layout's pair
CODECS: dict[int, Codec[DepotKey]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
DepotKey.FIELDS = ()

"""The frame that serializers of a schema registry put before a value: a zero, four bytes of schema id, the value.

frame:17:SCHEMA     an option says so: values begin with it, and its id must be 17 (or 17,18; * is any)
"""

from __future__ import annotations

import re
import struct
from typing import Final

from kclient.errors import ConfigError

SIZE: Final = 5
NO_FRAME: Final = "it does not begin with the registry's frame: a zero and a schema id"
_HEADER: Final = struct.Struct(">bI")
_OPTION: Final = re.compile(r"frame:(?P<ids>\*|\d+(?:,\d+)*):(?P<schema>.+)", re.DOTALL)


def split_frame(option: str, written: str) -> tuple[frozenset[int] | None, str]:
    """The ids that an option expects, and the schema behind them: None for no frame, empty for any id.

    Raises ConfigError.
    """
    if not written.startswith("frame:"):
        return None, written
    match = _OPTION.fullmatch(written)
    if match is None:
        raise ConfigError(
            f"{option} is not frame:IDS:SCHEMA. IDS are the schema ids that may come, such as 17 or 17,18, or *. "
            "Give a file or the schema itself behind it."
        )
    return frozenset() if match["ids"] == "*" else frozenset(map(int, match["ids"].split(","))), match[
        "schema"
    ]


def schema_id_of(data: bytes) -> int | None:
    """The id in the frame, None where there is no frame."""
    if len(data) < SIZE or data[0] != 0:
        return None
    schema_id: int = _HEADER.unpack_from(data)[1]
    return schema_id


def unexpected(schema_id: int) -> str:
    """Why a value is bad whose id is none of those that the option names."""
    return f"schema id {schema_id} is none of those expected"

"""Format `string`: UTF-8, strictly. Bytes that are no UTF-8 are bad, never replaced."""

from __future__ import annotations

from typing import Final

import attrs
import pyarrow as pa

from kclient.spark.decoding.values import Decoded, Refused, decode_apart

NO_TEXT: Final = "it is not UTF-8"


@attrs.frozen
class Text:
    """Keys or values that are text."""

    name: str = "string"

    @property
    def type(self) -> pa.DataType:
        """Spark's string."""
        return pa.string()

    def decode(self, values: pa.Array) -> Decoded:
        """The texts."""
        return decode_apart(values, as_text, pa.string())


def as_text(values: pa.Array) -> pa.Array:
    """Binary as text, without a copy. Raises Refused."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        raise Refused(NO_TEXT) from None

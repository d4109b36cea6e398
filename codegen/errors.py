"""The generator's error: file, field and reason."""

from __future__ import annotations


class SchemaError(Exception):
    """A schema that cannot be compiled. `field` is the path inside the message, empty for the message itself."""

    def __init__(self, file: str, field: str, reason: str) -> None:
        super().__init__(f"{file}: {field}: {reason}" if field else f"{file}: {reason}")
        self.file = file
        self.field = field
        self.reason = reason

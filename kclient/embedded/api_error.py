"""The error that a handler raises to answer the whole request with an error code."""

from __future__ import annotations


class ApiError(Exception):
    """The error code of the response, and its message if the response has a field for one."""

    def __init__(self, code: int, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

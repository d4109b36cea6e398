"""How an API says no: a handler raises `Refused`, and the whole request is answered with that error."""

from __future__ import annotations


class Refused(Exception):
    """Answer with this error code of the wire, and a message where the answer has room for one."""

    def __init__(self, code: int, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

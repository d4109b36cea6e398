"""One question in the forms that different versions need, and the answer as the class that it must be.

A request changes its shape in the course of its versions: one group, then several; names, then topic ids. What the
broker offers decides which form is sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import attrs

from kclient.errors import InternalError, VersionError
from kclient.protocol.message import Message

Answer = TypeVar("Answer", bound=Message)
Result = TypeVar("Result")


@attrs.frozen
class Form:
    """A request, the versions that can say it, and the words for what is missing where a broker has none of them."""

    message: Message
    lowest: int = 0
    highest: int | None = None
    missing: str = ""


async def first_understood(forms: Sequence[Form], send: Callable[[Form], Awaitable[Result]]) -> Result:
    """Send the first form that the broker has a version for; the choice of a version costs no round trip.

    Raises VersionError where it has none for the last one either, which then says what is missing.
    """
    for form in forms[:-1]:
        try:
            return await send(form)
        except VersionError as exc:
            if exc.api == "ApiVersions":  # it is no broker at all
                raise
    try:
        return await send(forms[-1])
    except VersionError as exc:
        if not forms[-1].missing or exc.api == "ApiVersions":
            raise
        raise _missing(forms[-1].missing, exc) from exc


def _missing(what: str, refusal: VersionError) -> VersionError:
    """The same refusal, with what the broker lacks before it."""
    return VersionError(
        f"{what} {refusal.text}",
        api=refusal.api,
        host=refusal.host,
        port=refusal.port,
        node_id=refusal.node_id,
    )


def expect(kind: type[Answer], answer: Message) -> Answer:
    """The answer, as the class it must be."""
    if not isinstance(answer, kind):
        raise InternalError(f"The network answered {kind.__name__} with {type(answer).__name__}.")
    return answer

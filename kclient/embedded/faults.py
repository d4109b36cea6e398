"""What a broker does to a request instead of, or besides, answering it well.

A rule fits an API and, if it says so, one broker and one client; it fires `times` times (None: for ever) and is then
gone. Several rules may fit one request: they all fire, in the order in which they were made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from kclient.protocol.message import Message

if TYPE_CHECKING:
    from kclient.embedded.request_context import RequestContext

Edit = Callable[[Any, Any], Message]  # request, answer → the answer to send


@attrs.define(eq=False)
class Rule:
    """One fault. What is None or zero does not happen."""

    api: str  # a request's name without "Request", or "*"
    times: int | None = 1
    broker: int | None = None
    client_id: str | None = None
    only_if: Callable[[Any], bool] | None = None  # looks at the request
    delay: float = 0.0  # seconds before it is handled; what follows on the connection waits behind it
    error: int | None = None  # refuse it with this code, unhandled
    ignore: bool = False  # never handle it, never answer
    silent: bool = False  # handle it, never answer
    cut: int | None = None  # send this many bytes of the answer, then reset the connection
    throttle_ms: int = 0  # say so in the answer, and handle nothing from this connection for so long
    edit: Edit | None = None

    def fits(self, context: RequestContext) -> bool:
        """Whether the rule speaks of this request."""
        return (
            self.api in (context.api, "*")
            and self.broker in (None, context.broker.node_id)
            and self.client_id in (None, context.client_id)
            and (self.only_if is None or self.only_if(context.message))
        )


class Faults:
    """The rules of a cluster."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []

    def add(self, rule: Rule) -> Rule:
        """Let it fire from now on."""
        self._rules.append(rule)
        return rule

    def remove(self, rule: Rule) -> None:
        """Let it fire no more; nothing happens if it is gone already."""
        if rule in self._rules:
            self._rules.remove(rule)

    def clear(self) -> None:
        """Remove all."""
        self._rules.clear()

    def take(self, context: RequestContext) -> list[Rule]:
        """The rules that fire for this request; those that are used up are gone."""
        if not self._rules:
            return []
        fired = [rule for rule in self._rules if rule.fits(context)]
        for rule in fired:
            if rule.times is not None:
                rule.times -= 1
                if rule.times <= 0:
                    self._rules.remove(rule)
        return fired

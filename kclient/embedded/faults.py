"""Faults: rules that make a broker fail, delay, drop or change the response to a request.

A rule matches an API and, if set, one broker and one client; it applies `times` times (None: for ever) and is then
removed. All rules that match a request apply, in the order in which they were added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from kclient.embedded.received_request import ReceivedRequest
from kclient.protocol.message import Message

Edit = Callable[[Any, Any], Message]  # request, response → the response to send


@attrs.define(eq=False)
class Rule:
    """One fault; a field that is None or zero has no effect."""

    api: str  # a request's name without "Request", or "*"
    times: int | None = 1
    broker: int | None = None
    client_id: str | None = None
    only_if: Callable[[Any], bool] | None = None  # looks at the request
    delay: float = 0.0  # seconds before it is handled; later requests of the connection wait
    error: int | None = None  # answer with this error code, unhandled
    ignore: bool = False  # never handle it, never answer
    silent: bool = False  # handle it, never answer
    cut: int | None = None  # send this many bytes of the response, then reset the connection
    throttle_ms: int = 0  # throttle time of the response; the connection is not read meanwhile
    edit: Edit | None = None

    def fits(self, request: ReceivedRequest) -> bool:
        """Whether the rule matches this request."""
        return (
            self.api in (request.api, "*")
            and self.broker in (None, request.node_id)
            and self.client_id in (None, request.client_id)
            and (self.only_if is None or self.only_if(request.message))
        )


class Faults:
    """The rules of a cluster."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []

    def add(self, rule: Rule) -> Rule:
        """Add a rule."""
        self._rules.append(rule)
        return rule

    def remove(self, rule: Rule) -> None:
        """Remove a rule, if it is still there."""
        if rule in self._rules:
            self._rules.remove(rule)

    def clear(self) -> None:
        """Remove all rules."""
        self._rules.clear()

    def take(self, request: ReceivedRequest) -> list[Rule]:
        """Return the rules that match this request; remove those that are used up."""
        if not self._rules:
            return []
        fired = [rule for rule in self._rules if rule.fits(request)]
        for rule in fired:
            if rule.times is not None:
                rule.times -= 1
                if rule.times <= 0:
                    self._rules.remove(rule)
        return fired

"""Controls of faults by API.

An API is a request's name without "Request", or "*" for all. All methods take `times` (None: until lifted), `broker`,
`client_id`, and `only_if`, a predicate on the request. They return the rule, which `lift` removes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, Final

import attrs

from kclient.embedded import apis
from kclient.embedded.control import brokers
from kclient.embedded.faults import Edit, Rule
from kclient.embedded.loop_thread import control
from kclient.embedded.state import ClusterState
from kclient.errors import ArgumentError
from kclient.generated.error_codes import TABLE
from kclient.protocol.message import Message

CODES: Final[dict[str, int]] = {row[1]: row[0] for row in TABLE}
NOT_PARTIAL: Final = frozenset({"brokers", "node_endpoints", "api_keys", "aborted_transactions"})


class FaultControls:
    """Methods of `EmbeddedCluster`. All rules that match a request apply, in the order in which they were added."""

    state: ClusterState

    @control
    def fail(self, api: str, error: str | int, times: int | None = 1, **where: Any) -> Rule:
        """Answer requests with an error, by name or code, without handling them."""
        return self._rule(api, times, error=error_code(error), **where)

    @control
    def delay(self, api: str, ms: float, times: int | None = None, **where: Any) -> Rule:
        """Handle requests later; later requests of the connection wait for them."""
        return self._rule(api, times, delay=ms / 1000, **where)

    @control
    def drop(self, api: str, times: int | None = 1, handled: bool = False, **where: Any) -> Rule:
        """Send no response; with `handled` the request is handled all the same.

        Later requests of the connection are answered, which no broker does: use `delay` for a broker that hangs.
        """
        return self._rule(api, times, silent=handled, ignore=not handled, **where)

    @control
    def cut(self, api: str, after: int = 0, times: int | None = 1, **where: Any) -> Rule:
        """Handle requests, send the first `after` bytes of the response, and reset the connection."""
        return self._rule(api, times, cut=after, **where)

    @control
    def throttle(self, api: str, ms: int, times: int | None = None, **where: Any) -> Rule:
        """Return this throttle time in responses, and do not read the client's next request before it is over.

        Brokers before 2.0 delay the response instead. KIP-219.
        """
        return self._rule(api, times, throttle_ms=ms, **where)

    @control
    def partial(self, api: str, keep: int = 1, times: int | None = 1, **where: Any) -> Rule:
        """Leave only the first `keep` partitions (or groups, topics) in responses."""
        return self._rule(api, times, edit=keep_first(keep), **where)

    @control
    def on(self, api: str, edit: Edit, times: int | None = None, **where: Any) -> Rule:
        """Send the result of `edit(request, response)` as the response. It runs on the cluster's loop."""
        return self._rule(api, times, edit=edit, **where)

    @control
    def lift(self, rule: Rule | None = None) -> None:
        """Remove one fault, or all of them."""
        if rule is None:
            self.state.faults.clear()
        else:
            self.state.faults.remove(rule)

    def _rule(
        self,
        api: str,
        times: int | None,
        *,
        broker: int | None = None,
        client_id: str | None = None,
        only_if: Callable[[Any], bool] | None = None,
        **what: Any,
    ) -> Rule:
        if times is not None and times < 1:
            raise ArgumentError(
                f"A fault happens {times} times: give 1 or more, or None for until it is lifted."
            )
        if broker is not None:
            brokers.find(self.state.brokers, broker)
        rule = Rule(api_name(api), times, broker, client_id, only_if, **what)
        return self.state.faults.add(rule)


def api_name(api: str) -> str:
    """Return the API's name, "*" for all. Raise ArgumentError with the closest name for an unknown one."""
    if api == "*" or api in apis.MODULES:
        return api
    raise ArgumentError(
        f"No API is called {api!r}{_near(str(api), apis.MODULES)}; give the request's name, or '*'."
    )


def error_code(error: str | int) -> int:
    """Return the code of an error. Raise ArgumentError with the closest name for an unknown one."""
    if isinstance(error, int) and -(2**15) <= error < 2**15:
        return error  # unknown codes are allowed: newer brokers send them
    if error not in CODES:
        raise ArgumentError(
            f"No error is called {error!r}{_near(str(error), CODES)}; give Kafka's name or its code."
        )
    return CODES[error]


def _near(name: str, known: Iterable[str]) -> str:
    spelled = {one.replace("_", "").lower(): one for one in known}
    near = get_close_matches(name.replace("_", "").lower(), spelled, n=1)
    return f" (did you mean {spelled[near[0]]!r}?)" if near else ""


def keep_first(count: int) -> Edit:
    """Return an edit that keeps the first `count` partitions, groups or topics of a response. Raise ArgumentError."""
    if count < 0:
        raise ArgumentError(f"A response cannot keep {count} of its entries; give 0 or more.")

    def edit(_: Message, response: Message) -> Message:
        _shorten(response, count)
        return response

    return edit


def _shorten(holder: Any, left: int) -> int:
    """Cut the innermost arrays down to `left` entries in all; return how many of them remain."""
    for name in _arrays(holder):
        entries = getattr(holder, name)
        if any(_arrays(entry) for entry in entries):
            for entry in entries:
                left = _shorten(entry, left)
        else:
            setattr(holder, name, entries[:left])
            left -= min(left, len(entries))
    return left


def _arrays(holder: Any) -> list[str]:
    """Return the fields with an array of structs, except those that a request cannot list."""
    return [
        field.name
        for field in attrs.fields(type(holder))
        if isinstance(value := getattr(holder, field.name), list)
        and value
        and attrs.has(type(value[0]))
        and field.name not in NOT_PARTIAL
    ]

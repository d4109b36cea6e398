"""Faults by API, as methods: `EmbeddedCluster` has them all.

An API is a request's name without "Request", or "*" for all. All take `times` (None: until lifted), `broker`,
`client_id`, and `only_if`, a function that looks at the request. They give back the rule, which `lift` takes away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kclient.embedded.control import brokers, faults
from kclient.embedded.faults import Edit, Rule
from kclient.embedded.loop_thread import control
from kclient.embedded.state import ClusterState
from kclient.errors import ArgumentError


class FaultControls:
    """See the module. Several faults may hit one request: they all do, in the order in which they were made."""

    state: ClusterState

    @control
    def fail(self, api: str, error: str | int, times: int | None = 1, **where: Any) -> Rule:
        """Refuse requests with an error of the wire, by name or code, without handling them."""
        return self._rule(api, times, error=faults.error_code(error), **where)

    @control
    def delay(self, api: str, ms: float, times: int | None = None, **where: Any) -> Rule:
        """Begin to handle requests later; what follows on the connection waits behind them."""
        return self._rule(api, times, delay=ms / 1000, **where)

    @control
    def drop(self, api: str, times: int | None = 1, handled: bool = False, **where: Any) -> Rule:
        """Answer nothing; `handled` says whether what was asked is done all the same.

        Later requests of the connection are answered, as no broker does: for one that hangs take `delay`.
        """
        return self._rule(api, times, silent=handled, ignore=not handled, **where)

    @control
    def cut(self, api: str, after: int = 0, times: int | None = 1, **where: Any) -> Rule:
        """Handle requests, send the first bytes of the answer, and reset the connection."""
        return self._rule(api, times, cut=after, **where)

    @control
    def throttle(self, api: str, ms: int, times: int | None = None, **where: Any) -> Rule:
        """Say in the answers that the client is throttled for so long, and do not read its next request before.

        Brokers before 2.0 answer so late instead. KIP-219.
        """
        return self._rule(api, times, throttle_ms=ms, **where)

    @control
    def partial(self, api: str, keep: int = 1, times: int | None = 1, **where: Any) -> Rule:
        """Answer about the first `keep` partitions (or groups, topics) only."""
        return self._rule(api, times, edit=faults.keep_first(keep), **where)

    @control
    def on(self, api: str, edit: Edit, times: int | None = None, **where: Any) -> Rule:
        """Send what `edit(request, answer)` makes of an answer. It runs on the cluster's loop."""
        return self._rule(api, times, edit=edit, **where)

    @control
    def lift(self, rule: Rule | None = None) -> None:
        """Take one fault away, or all of them."""
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
            brokers.find(self.state, broker)
        rule = Rule(faults.api_name(api), times, broker, client_id, only_if, **what)
        return self.state.faults.add(rule)

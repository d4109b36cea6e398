"""The group coordinator: looking it up, and sending requests to it.

    unknown ─ FindCoordinator ─▶ known ─ NOT_COORDINATOR, lost connection, session timeout ─▶ unknown

All callers share one FindCoordinator request and, after a failure, one backoff; a caller that is cancelled does not
cancel the lookup. Requests use a connection of their own, so that a fetch that waits for records never delays a
heartbeat.

`VersionedRequest` is one shape of a request with the versions that have it. A request changes its shape from version to
version (one group, then several; topic names, then topic ids), and the versions that the broker offers decide which
shape `send_first_supported` sends.

`request_until_answered` repeats a request until the response is final:

    code      15, 16             the coordinator has moved: look it up, send again
    code      14, retriable      send again after a backoff
    anything else                return the response; its meaning is up to the caller
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import attrs

from kclient.config import Config
from kclient.errors import ClosedError, ConnectError, InternalError, KclientError, VersionError
from kclient.generated.find_coordinator_request import FindCoordinatorRequest
from kclient.generated.find_coordinator_response import Coordinator as FoundCoordinator
from kclient.generated.find_coordinator_response import FindCoordinatorResponse
from kclient.log import get_logger
from kclient.network.backoff import Backoff
from kclient.network.cluster import Cluster
from kclient.network.errors import broker_error
from kclient.network.metadata import is_usable
from kclient.protocol import errors as codes
from kclient.protocol.message import Message
from kclient.runtime import Runtime
from kclient.types import Broker

logger: Final = get_logger("kclient.coordinator")

Response = TypeVar("Response", bound=Message)
Result = TypeVar("Result")


@attrs.frozen
class VersionedRequest:
    """A request, the versions that can carry it, and the error text for a broker that has none of them."""

    message: Message
    lowest: int = 0
    highest: int | None = None
    missing: str = ""


async def send_first_supported(
    requests: Sequence[VersionedRequest], send: Callable[[VersionedRequest], Awaitable[Result]]
) -> Result:
    """Send the first request that the broker supports; choosing a version needs no round trip.

    Raises VersionError, with `missing` of the last request, if the broker supports none of them.
    """
    for request in requests[:-1]:
        try:
            return await send(request)
        except VersionError as exc:
            if exc.api == "ApiVersions":  # the peer is not a Kafka broker: no other version helps
                raise
    try:
        return await send(requests[-1])
    except VersionError as exc:
        if not requests[-1].missing or exc.api == "ApiVersions":
            raise
        raise _with_missing_feature(requests[-1].missing, exc) from exc


def _with_missing_feature(missing: str, exc: VersionError) -> VersionError:
    """Return the same error with the missing feature named first."""
    return VersionError(
        f"{missing} {exc.text}",
        api=exc.api,
        host=exc.host,
        port=exc.port,
        node_id=exc.node_id,
    )


def expect(kind: type[Response], response: Message) -> Response:
    """Return the response as a `kind`. Raises InternalError for any other class."""
    if not isinstance(response, kind):
        raise InternalError(f"The network answered {kind.__name__} with {type(response).__name__}.")
    return response


COORDINATOR_MOVED: Final = (
    codes.COORDINATOR_NOT_AVAILABLE,
    codes.NOT_COORDINATOR,
)  # look the coordinator up again
COORDINATOR_PURPOSE: Final = "coordinator"
KEYS_SINCE: Final = 4  # Kafka 3.0, KIP-699: FindCoordinator takes a list of keys from this version on


class Coordinator:
    """The coordinator of one group."""

    def __init__(self, cluster: Cluster, group_id: str, config: Config, runtime: Runtime) -> None:
        self.cluster = cluster
        self.group_id = group_id
        self.node_id: int | None = None
        self._previous_id: int | None = None  # the coordinator that the last lookup found
        self.found_at: float = 0.0  # loop time of the last successful lookup
        self._confirmed = False  # whether it has answered a request since it was found
        self._runtime = runtime
        self._backoff = Backoff.for_retries(config, runtime)
        self._next_lookup_at = 0.0
        self._lookup: asyncio.Task[int | KclientError] | None = None

    async def ensure(self) -> int:
        """Return the coordinator's node id; repeat the lookup until it succeeds. The caller sets the timeout.

        Raises the errors that another lookup cannot solve: GroupAuthorizationError, AuthenticationError, BrokerError,
        ClosedError.
        """
        while True:
            try:
                return await self.lookup()
            except KclientError as exc:
                if not exc.retriable:
                    raise
                logger.debug("coordinator of group %s not found yet: %s", self.group_id, exc.text)

    async def lookup(self) -> int:
        """Return the coordinator's node id; if it is unknown, do one lookup, shared by all callers that wait.

        Raises what `ensure` raises, and the retriable errors of that lookup (ConnectError, BrokerError).
        """
        if self.node_id is not None:
            return self.node_id
        if self._lookup is None:
            self._lookup = asyncio.create_task(
                self._look_up(), name=f"kclient find coordinator {self.group_id}"
            )
        lookup = self._lookup
        # wait() and not await: a caller that is cancelled must not cancel the lookup that others wait for.
        await asyncio.wait({lookup})
        if lookup.cancelled():
            raise ClosedError(
                f"The coordinator of group {self.group_id} was not found before the client was closed. "
                "A call still waited for it. End all calls before closing the client."
            )
        outcome = lookup.result()
        if isinstance(outcome, KclientError):
            # A copy for each caller: one object raised in several tasks would collect all their tracebacks.
            raise copy.copy(outcome) from outcome
        return outcome

    async def connect(self) -> None:
        """Look the coordinator up if it is unknown, and connect to it, so that the next request is sent without delay.

        Raises what `lookup` and `request` raise.
        """
        node_id = await self.lookup()
        try:
            await self.cluster.connect(node_id, COORDINATOR_PURPOSE)
        except ConnectError as exc:
            self._connection_lost(exc, node_id)
            raise

    def require_connection(self) -> None:
        """Raise BrokerError with COORDINATOR_NOT_AVAILABLE if a request would have to wait for a connection."""
        if self.node_id is None or not self.cluster.is_connected(self.node_id, COORDINATOR_PURPOSE):
            raise self._error(codes.COORDINATOR_NOT_AVAILABLE)

    def mark_unknown(self, reason: str, node_id: int | None = None) -> None:
        """Mark the coordinator unknown, so that the next request is preceded by a lookup.

        With `node_id`, only if that broker is still the known coordinator: a response may be older than the lookup.
        """
        if self.node_id is None or node_id not in (None, self.node_id):
            return
        level = logging.INFO if self._confirmed else logging.DEBUG
        logger.log(level, "group %s: coordinator %d marked unknown: %s", self.group_id, self.node_id, reason)
        self.node_id = None
        self._confirmed = False

    async def request(
        self,
        response_type: type[Response],
        *requests: VersionedRequest,
        timeout: float | None = None,
        purpose: str = COORDINATOR_PURPOSE,
    ) -> Response:
        """Send the first request that the coordinator supports; the keywords are those of `Cluster.request`.

        A lost connection makes the coordinator unknown and raises ConnectError (retriable). While it is unknown,
        BrokerError with COORDINATOR_NOT_AVAILABLE (retriable) is raised without a request.
        """
        node_id = self.node_id
        if node_id is None:
            raise self._error(codes.COORDINATOR_NOT_AVAILABLE)

        async def send(request: VersionedRequest) -> Message:
            return await self.cluster.request(
                node_id,
                request.message,
                purpose=purpose,
                timeout=timeout,
                min_version=request.lowest,
                max_version=request.highest,
            )

        try:
            message = await send_first_supported(requests, send)
        except ConnectError as exc:
            self._connection_lost(exc, node_id)
            raise
        self._confirm(node_id)
        return expect(response_type, message)

    async def close(self) -> None:
        """Cancel a running lookup."""
        if self._lookup is not None:
            self._lookup.cancel()
            await asyncio.wait({self._lookup})

    def _connection_lost(self, error: ConnectError, node_id: int) -> None:
        if error.retriable:
            self.mark_unknown(error.text.partition(". ")[0], node_id)

    def _confirm(self, node_id: int) -> None:
        """Log the coordinator once it has answered: a lookup alone may name a broker that is not reachable."""
        if node_id == self.node_id and not self._confirmed:
            self._confirmed = True
            logger.info("group %s: broker %d is the coordinator", self.group_id, node_id)

    async def _look_up(self) -> int | KclientError:
        """Do one lookup, after the backoff of the last failure.

        Return a failure instead of raising it: if all callers were cancelled, asyncio would log it as never retrieved.
        """
        try:
            await asyncio.sleep(self._next_lookup_at - self._runtime.now())
            node_id = await self._find_coordinator()
            # Connect now: the next request may have to wait for a poll, the connection does not.
            self.cluster.start_connecting(node_id, COORDINATOR_PURPOSE)
        except KclientError as exc:
            self._next_lookup_at = self._runtime.now() + self._backoff.next()
            if exc.retriable:
                self.cluster.request_update("the group's coordinator was not found", reset_backoff=False)
            return exc
        finally:
            self._lookup = None
        self._backoff.reset()
        if self._previous_id not in (None, node_id):
            self.cluster.disconnect(self._previous_id, COORDINATOR_PURPOSE)  # it gets no more requests
        self.node_id = self._previous_id = node_id
        self.found_at = self._runtime.now()
        return node_id

    async def _find_coordinator(self) -> int:
        """Send FindCoordinator to the least loaded broker and return the node id that it names."""
        requests = (
            VersionedRequest(FindCoordinatorRequest(coordinator_keys=[self.group_id]), lowest=KEYS_SINCE),
            VersionedRequest(FindCoordinatorRequest(key=self.group_id), highest=KEYS_SINCE - 1),
        )
        version, message = await send_first_supported(requests, self._send_to_any)
        response = expect(FindCoordinatorResponse, message)
        found: FindCoordinatorResponse | FoundCoordinator = response
        if version >= KEYS_SINCE:
            if not response.coordinators:
                raise self._error(codes.UNKNOWN_SERVER_ERROR, "the response names no coordinator")
            found = response.coordinators[0]
        if found.error_code != codes.NONE:
            raise self._error(found.error_code, found.error_message)
        if not is_usable(Broker(found.node_id, found.host, found.port)):
            nowhere = f"the response names broker {found.node_id} at {found.host}:{found.port}"
            raise self._error(codes.COORDINATOR_NOT_AVAILABLE, nowhere)
        self.cluster.learn_broker(found.node_id, found.host, found.port)
        return found.node_id

    async def _send_to_any(self, request: VersionedRequest) -> tuple[int, Message]:
        return await self.cluster.request_any(
            request.message, min_version=request.lowest, max_version=request.highest
        )

    def _error(self, code: int, message: str | None = None) -> KclientError:
        return broker_error(
            code, f"Finding the coordinator of group {self.group_id}", group=self.group_id, message=message
        )


async def request_until_answered(
    coordinator: Coordinator,
    kind: type[Response],
    *requests: VersionedRequest,
    code_of: Callable[[Response], int],
    config: Config,
    runtime: Runtime,
) -> Response:
    """Return the first response whose code is not retriable. The caller sets the timeout.

    Raises what `Coordinator.ensure` raises, and VersionError where the coordinator has no version for any of them.
    """
    backoff = Backoff.for_retries(config, runtime)
    while True:
        try:
            await coordinator.ensure()
            response = await coordinator.request(kind, *requests)
        except KclientError as exc:
            if not exc.retriable:
                raise
            logger.debug("group %s: %s not answered yet: %s", coordinator.group_id, kind.NAME, exc.text)
        else:
            code = codes.error(code_of(response))
            if not code.retriable:
                return response
            if code.code in COORDINATOR_MOVED:
                coordinator.mark_unknown(f"it answered {code.name} ({code.code})")
        await asyncio.sleep(backoff.next())

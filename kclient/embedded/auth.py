"""Authentication and authorization: users, the broker's side of SASL on one connection, and ACLs.

    SaslHandshake ─▶ SaslAuthenticate … ─▶ authenticated ─▶ (session near its end) SaslHandshake ─▶ …

An authenticated connection may authenticate again for the same user with the same mechanism, if sessions expire at all,
and not twice within a second (KIP-368). A failure closes the connection after its response.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.releases import Release
from kclient.errors import ArgumentError, ProtocolDecodeError
from kclient.protocol.errors import ILLEGAL_SASL_STATE
from kclient.runtime import Runtime
from kclient.security import (
    SCRAM_DIGESTS,
    PlainUser,
    ScramCredential,
    ScramError,
    ScramServer,
    Secret,
    plain_user,
    scram_credential,
)

if TYPE_CHECKING:
    from kclient.embedded.connection import ServerConnection
    from kclient.embedded.request_context import RequestContext


OPERATIONS = frozenset(
    {"READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"}
    | {"CLUSTER_ACTION", "IDEMPOTENT_WRITE", "ALL"}
)
RESOURCES = frozenset({"Topic", "Group", "TransactionalId", "Cluster"})


class Acl:
    """Denials, in the order in which they were added. "*" matches anything, also within a name."""

    def __init__(self) -> None:
        self._denied: list[tuple[str, str, str]] = []

    def deny(self, principal: str, operation: str, resource: str) -> None:
        """Deny, say, ("User:alice", "READ", "Topic:orders"). Raise ArgumentError for an unknown operation."""
        kind = resource.partition(":")[0]
        if operation not in OPERATIONS or kind not in RESOURCES:
            raise ArgumentError(
                f"Cannot deny {operation} on {resource}: an operation is one of {', '.join(sorted(OPERATIONS))}, "
                f"a resource one of {', '.join(sorted(RESOURCES))} with a colon and a name after it."
            )
        self._denied.append((principal, operation, resource))

    def allow(self, principal: str, operation: str, resource: str) -> None:
        """Remove a denial. Raise ArgumentError if there is none."""
        if (principal, operation, resource) not in self._denied:
            raise ArgumentError(f"{operation} on {resource} was not denied to {principal}.")
        self._denied.remove((principal, operation, resource))

    def clear(self) -> None:
        """Remove all denials."""
        self._denied.clear()

    def allows(self, principal: str, operation: str, resource: str) -> bool:
        """Whether no denial matches."""
        return not any(
            fnmatchcase(principal, who) and what in (operation, "ALL") and fnmatchcase(resource, which)
            for who, what, which in self._denied
        )


CODES: Final = {
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
}
OF_TOPIC: Final = (
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
)
OF_CLUSTER: Final = (
    *("CREATE", "ALTER", "DESCRIBE", "CLUSTER_ACTION"),
    *("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE"),
)
OF_GROUP: Final = ("READ", "DELETE", "DESCRIBE")
OF_GROUP_CONFIG: Final = ("DESCRIBE_CONFIGS", "ALTER_CONFIGS")
GROUP_CONFIGS_SINCE: Final = Release.parse("3.8")
NOT_ASKED: Final = -(2**31)
CLUSTER: Final = "Cluster:kafka-cluster"


def authorized_operations(context: RequestContext, operations: tuple[str, ...], resource: str) -> int:
    """Return the bit set of allowed operations on, say, "Topic:orders"."""
    return sum(1 << CODES[operation] for operation in operations if context.allowed(operation, resource))


def group_operations(context: RequestContext, group_id: str) -> int:
    """Return the same for a group; newer releases also have configs of groups."""
    newer = context.state.release >= GROUP_CONFIGS_SINCE
    operations = (*OF_GROUP, *OF_GROUP_CONFIG) if newer else OF_GROUP
    return authorized_operations(context, operations, f"Group:{group_id}")


SALT_BYTES: Final = 20


class Users:
    """The users of a cluster. Passwords are not in the repr."""

    def __init__(self) -> None:
        self._passwords: dict[str, Secret] = {}
        self._credentials: dict[tuple[str, str], ScramCredential] = {}

    def add(self, name: str, password: str, runtime: Runtime) -> None:
        """Add a user, or replace the password of a known one."""
        if not name or not password:
            raise ArgumentError("A user has a name and a password.")
        self._passwords[name] = Secret(password)
        for mechanism in SCRAM_DIGESTS:
            salt = runtime.random_bytes(SALT_BYTES)
            self._credentials[mechanism, name] = scram_credential(mechanism, password, salt)

    def remove(self, name: str) -> None:
        """Remove a user; open connections stay. Raise ArgumentError for an unknown one."""
        if self._passwords.pop(name, None) is None:
            raise ArgumentError(f"There is no user {name!r}.")
        for mechanism in SCRAM_DIGESTS:
            del self._credentials[mechanism, name]

    def admits(self, user: PlainUser) -> bool:
        """Whether this is the user's password."""
        return self._passwords.get(user.username) == user.password

    def credential(self, mechanism: str, name: str) -> ScramCredential | None:
        """Return the credential of a user for SCRAM."""
        return self._credentials.get((mechanism, name))


NONCE_BYTES: Final = 18
LEAST_SECONDS: Final = 1.0  # between two renewals of one session


class AuthenticationFailedError(Exception):
    """Authentication failed; the text is the error message of Kafka."""


class Authentication:
    """One SASL exchange on a connection."""

    def __init__(self, connection: ServerConnection, mechanism: str) -> None:
        self.mechanism = mechanism
        self.done = False
        self._connection = connection
        self._users = connection.broker.state.users
        nonce = connection.broker.state.runtime.random_bytes(NONCE_BYTES).hex()
        self._scram: ScramServer | None = None
        if mechanism in SCRAM_DIGESTS:
            self._scram = ScramServer(mechanism, lambda name: self._users.credential(mechanism, name), nonce)

    def step(self, token: bytes) -> bytes:
        """Return the response to a token; after the last one the connection is authenticated.

        Raise AuthenticationFailedError, or ProtocolDecodeError if the connection closes without a response.
        """
        if self._connection.authenticated and self._connection.mechanism != self.mechanism:
            raise ProtocolDecodeError("a session is renewed by the mechanism that it began with")
        if self._scram is None:
            self._succeed(self._plain(token))
            return b""
        try:
            response = self._scram.step(token)
        except ScramError:
            raise AuthenticationFailedError(
                "Authentication failed during authentication due to invalid credentials with SASL mechanism "
                f"{self.mechanism}"
            ) from None
        if self._scram.done:
            self._succeed(self._scram.username)
        return response

    def _plain(self, token: bytes) -> str:
        try:
            user = plain_user(token)
        except ValueError as exc:
            raise AuthenticationFailedError(f"Authentication failed: {exc}") from None
        if not self._users.admits(user):
            raise AuthenticationFailedError("Authentication failed: Invalid username or password")
        return user.username

    def _succeed(self, name: str) -> None:
        connection = self._connection
        principal = f"User:{name}"
        if connection.authenticated and connection.principal != principal:
            raise AuthenticationFailedError(
                "Cannot change principals during re-authentication from "
                f"{connection.principal.replace(':', '.')}: {principal.replace(':', '.')}"
            )
        state = connection.broker.state
        lifetime_ms = state.settings.connections_max_reauth_ms
        connection.principal, connection.mechanism = principal, self.mechanism
        connection.authenticated = self.done = True
        connection.session_ends = state.clock.now() + lifetime_ms / 1000 if lifetime_ms > 0 else None


def may_begin(connection: ServerConnection) -> bool:
    """Whether a handshake is allowed: on a new connection, or to re-authenticate (KIP-368)."""
    if not connection.listener.mechanisms:
        return False
    if not connection.authenticated:
        return True
    renewed_at, now = connection.renewed_at, connection.broker.state.clock.now()
    long_ago = renewed_at is None or now - renewed_at >= LEAST_SECONDS
    return connection.session_ends is not None and long_ago


def require_turn(context: RequestContext) -> None:
    """Raise ApiError during a SASL exchange for any request but its tokens."""
    connection = context.connection
    if connection.sasl is not None and context.api != "SaslAuthenticate":
        connection.last_response = True
        raise ApiError(ILLEGAL_SASL_STATE)


def begin(connection: ServerConnection, mechanism: str, *, raw: bool) -> None:
    """Begin a SASL exchange; `raw` tokens have no Kafka headers."""
    if connection.authenticated:
        connection.renewed_at = connection.broker.state.clock.now()
    authentication = connection.sasl = Authentication(connection, mechanism)

    async def token(frame: memoryview) -> bytes:
        try:
            response = authentication.step(bytes(frame))
        except AuthenticationFailedError as exc:
            raise ProtocolDecodeError(
                f"not authenticated: {exc}"
            ) from None  # old clients get no error response
        if authentication.done:
            end(connection)
        return response

    if raw:
        connection.raw, connection.smallest = token, 0


def end(connection: ServerConnection) -> None:
    """End the SASL exchange."""
    from kclient.network.transport import SMALLEST_FRAME

    connection.sasl, connection.raw, connection.smallest = None, None, SMALLEST_FRAME

"""Users and their SASL exchanges, and ACLs. `sasl.py` lets a connection authenticate."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

from kclient.embedded.oauth import INVALID, OAuthValidator, TokenRefusedError
from kclient.embedded.releases import Release
from kclient.errors import ArgumentError
from kclient.log import get_logger
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
from kclient.security.oauthbearer import read_bearer_message

logger: Final = get_logger("kclient.embedded")

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


def group_operations(release: Release) -> tuple[str, ...]:
    """Return the operations on groups; newer releases also have configs of groups."""
    return (*OF_GROUP, *OF_GROUP_CONFIG) if release >= GROUP_CONFIGS_SINCE else OF_GROUP


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


class AuthenticationFailedError(Exception):
    """Authentication failed; the text is the error message of Kafka."""


class Authentication:
    """One SASL exchange: tokens of the client in, responses out, and at the end the name of the user."""

    def __init__(self, users: Users, mechanism: str, nonce: str, oauth: OAuthValidator, now: float) -> None:
        self.mechanism = mechanism
        self.username: str | None = None  # set by the last token
        self.expires_at: float | None = None  # of a bearer token, in seconds since 1970
        self.lifetime_ms = 0  # of the session, once it has begun; 0: no limit
        self._now = now
        self._challenge = ""  # what a refused token was answered with
        self._oauth = oauth
        self._users = users
        self._scram: ScramServer | None = None
        if mechanism in SCRAM_DIGESTS:
            self._scram = ScramServer(mechanism, lambda name: users.credential(mechanism, name), nonce)

    def step(self, token: bytes) -> bytes:
        """Return the response to a token. Raise AuthenticationFailedError."""
        if self.mechanism == "OAUTHBEARER":
            return self._bearer(token)
        if self._scram is None:
            self.username = self._plain(token)
            return b""
        try:
            response = self._scram.step(token)
        except ScramError:
            raise AuthenticationFailedError(
                "Authentication failed during authentication due to invalid credentials with SASL mechanism "
                f"{self.mechanism}"
            ) from None
        if self._scram.done:
            self.username = self._scram.username
        return response

    def _bearer(self, message: bytes) -> bytes:
        """Answer a refused token with a challenge; the error follows the client's next message (RFC 7628, 3.2.3)."""
        if self._challenge:
            raise AuthenticationFailedError(self._challenge)
        try:
            token = self._oauth.validate(read_bearer_message(message).token, self._now)
        except TokenRefusedError as exc:
            self._challenge, reason = exc.challenge, str(exc)
        except ValueError as exc:
            self._challenge, reason = INVALID, str(exc)
        else:
            self.username, self.expires_at = token.principal, token.expires_at
            return b""
        logger.info("refused a token of OAUTHBEARER: %s", reason)
        return self._challenge.encode()

    def _plain(self, token: bytes) -> str:
        try:
            user = plain_user(token)
        except ValueError as exc:
            raise AuthenticationFailedError(f"Authentication failed: {exc}") from None
        if not self._users.admits(user):
            raise AuthenticationFailedError("Authentication failed: Invalid username or password")
        return user.username

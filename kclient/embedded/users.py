"""Who may log in: names with a password, and with it the credentials of every SCRAM mechanism."""

from __future__ import annotations

from typing import Final

from kclient.errors import ArgumentError
from kclient.runtime import Runtime
from kclient.security import SCRAM_DIGESTS, PlainUser, ScramCredential, Secret, scram_credential

SALT_BYTES: Final = 20


class Users:
    """The users of one cluster. Nothing of a password is in its repr."""

    def __init__(self) -> None:
        self._passwords: dict[str, Secret] = {}
        self._credentials: dict[tuple[str, str], ScramCredential] = {}

    def add(self, name: str, password: str, runtime: Runtime) -> None:
        """Let a user in with this password from now on, and with no other."""
        if not name or not password:
            raise ArgumentError("A user has a name and a password.")
        self._passwords[name] = Secret(password)
        for mechanism in SCRAM_DIGESTS:
            salt = runtime.random_bytes(SALT_BYTES)
            self._credentials[mechanism, name] = scram_credential(mechanism, password, salt)

    def remove(self, name: str) -> None:
        """Let a user in no more; connections that are open stay. Raises ArgumentError for an unknown one."""
        if self._passwords.pop(name, None) is None:
            raise ArgumentError(f"There is no user {name!r}.")
        for mechanism in SCRAM_DIGESTS:
            del self._credentials[mechanism, name]

    def admits(self, user: PlainUser) -> bool:
        """Whether this is the user's password."""
        return self._passwords.get(user.username) == user.password

    def credential(self, mechanism: str, name: str) -> ScramCredential | None:
        """What SCRAM compares a user's proof with."""
        return self._credentials.get((mechanism, name))

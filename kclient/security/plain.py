"""SASL PLAIN (RFC 4616), both sides: one token, `authorization id NUL user NUL password`, and no response to check."""

from __future__ import annotations

import attrs

from kclient.security.secret import HiddenBytes, Secret

NUL = "\x00"


def plain_token(username: str, password: str) -> HiddenBytes:
    """Return the client's only token. Raise ValueError if user and password cannot be separated."""
    if not username or NUL in username + password:
        raise ValueError("PLAIN needs a user name, and no NUL character in user name and password")
    return HiddenBytes(f"{NUL}{username}{NUL}{password}".encode())


@attrs.frozen
class PlainUser:
    """The contents of a PLAIN token."""

    authorization_id: str
    username: str
    password: Secret


def plain_user(token: bytes) -> PlainUser:
    """Read a client's token. Raises ValueError for what is none; whether the password is right is the caller's."""
    try:
        authorization_id, username, password = bytes(token).decode().split(NUL)
    except ValueError:
        raise ValueError("a PLAIN token has three parts of UTF-8 text with NUL between") from None
    if not username or not password:
        raise ValueError("a PLAIN token names a user and a password")
    if authorization_id not in ("", username):
        raise ValueError("a PLAIN token must not speak for another user")
    return PlainUser(authorization_id, username, Secret(password))

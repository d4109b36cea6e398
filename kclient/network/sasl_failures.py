"""Why authentication failed, as typed errors with place, cause and next step, and never with a token or a secret."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kclient.errors import AuthenticationError
from kclient.network.unreachable import Peer, where
from kclient.protocol.errors import error
from kclient.text import format_names, printable

MOST_OFFERED: Final = 20


def refused(peer: Peer, mechanism: str, code: int, said: str) -> AuthenticationError:
    """The broker answered with an error code."""
    quoted = f': "{printable(said)}"' if said else ""
    return AuthenticationError(
        f"{peer} refused the authentication with {mechanism}: {error(code).name} ({code}){quoted}. "
        "User name or password is wrong, or the broker does not have this user for this mechanism. "
        "Correct sasl_username and sasl_password (or sasl_jaas_config); the same ones will be refused again.",
        mechanism=mechanism,
        **where(peer),
    )


def not_offered(peer: Peer, mechanism: str, offered: Iterable[str]) -> AuthenticationError:
    """The listener has other mechanisms."""
    names = format_names(list(offered), MOST_OFFERED) or "no mechanism at all"
    return AuthenticationError(
        f"{peer} does not offer {mechanism}; it offers {names}. "
        "The listener is set up for others. "
        "Set sasl_mechanism to one that it offers, or have the broker's sasl.enabled.mechanisms name it.",
        mechanism=mechanism,
        **where(peer),
    )


def not_asked_for(peer: Peer, mechanism: str) -> AuthenticationError:
    """The listener wants no SASL at all."""
    return AuthenticationError(
        f"{peer} refused the authentication with {mechanism}: ILLEGAL_SASL_STATE (34). "
        "The listener does not ask for SASL. "
        "Give the port of a SASL listener, or set security_protocol to SSL or PLAINTEXT as the listener has it.",
        mechanism=mechanism,
        **where(peer),
    )


def asked_for(peer: Peer, offered: Iterable[str]) -> AuthenticationError:
    """The listener wants SASL, and we have none."""
    return AuthenticationError(
        f"{peer} wants clients to authenticate with SASL, and this client does not. "
        f"The listener offers {format_names(list(offered), MOST_OFFERED)}. "
        "Set security_protocol to SASL_SSL (or SASL_PLAINTEXT), sasl_mechanism to one of these, and user and password.",
        **where(peer),
    )


def not_proved(peer: Peer, mechanism: str, why: str) -> AuthenticationError:
    """The broker broke the mechanism's rules, or could not prove that it knows the credential."""
    return AuthenticationError(
        f"{peer}: {mechanism} failed: {why}. "
        "The peer does not follow the mechanism; it may not be the broker that it claims to be. "
        "Nothing was sent to it after this. Check the address, and the broker's own log.",
        mechanism=mechanism,
        **where(peer),
    )


def too_slow(peer: Peer, mechanism: str, seconds: float) -> AuthenticationError:
    """The key could not be derived in time."""
    return AuthenticationError(
        f"{peer}: {mechanism} asked for a key that took more than {seconds:.0f} s to derive. "
        "The broker's iteration count is very high, or this machine is busy. "
        "Lower the iterations of this user's credential on the broker.",
        mechanism=mechanism,
        **where(peer),
    )


def no_credentials(peer: Peer, mechanism: str, why: str) -> AuthenticationError:
    """The provider of user or password has none now."""
    return AuthenticationError(
        f"{peer}: no credentials for {mechanism}: the password {why}. "
        "What provides it worked when the client was made and does not now. "
        "Correct it; the next attempt asks it again.",
        mechanism=mechanism,
        **where(peer),
    )


def session_too_short(peer: Peer, mechanism: str, lifetime_ms: int) -> AuthenticationError:
    """The broker limits sessions to less than any broker can renew."""
    return AuthenticationError(
        f"{peer} accepted {mechanism} for a session of {lifetime_ms} ms. "
        "No broker renews a session within a second of the last time: connections.max.reauth.ms is set too low, or the "
        "peer is not the broker that it claims to be. Set connections.max.reauth.ms to 1000 or more, or to 0.",
        mechanism=mechanism,
        **where(peer),
    )

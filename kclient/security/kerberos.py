"""SASL GSSAPI (RFC 4752) as Kafka speaks it, and the Kerberos ticket that it needs, both by the package `gssapi`.

    client    AP-REQ                             a ticket for SERVICE/HOST
    broker    AP-REP                             it has proved that it knows the key of SERVICE/HOST
    client    nothing
    broker    wrapped: layers, largest message   1: none, 2: integrity, 4: confidentiality
    client    wrapped: 1, 0, principal           no layer: what follows is protected by TLS or not at all
    broker    nothing                            the client is authenticated

Tickets come from a keytab, from a ticket cache, or from what the environment names (KRB5CCNAME, KRB5_CLIENT_KTNAME).
Which KDC is asked, and which principal a host's name means, is decided by krb5.conf (KRB5_CONFIG). Every function that
calls GSSAPI may wait for a KDC, so it belongs in a worker thread. GSSAPI keeps the text of an error for the thread in
which it happened: errors are described where they are caught.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any, Final

import attrs

from kclient.errors import ConfigError
from kclient.security.local_file import LARGEST_TEXT, read_local
from kclient.security.secret import HiddenBytes, problem_of
from kclient.text import format_names, printable

NO_LAYER: Final = 1  # of the layers that a broker offers, the only one that Kafka's records can use
OFFER_BYTES: Final = 4
MOST_PRINCIPALS: Final = 10  # of a keytab, in an error
FIRST_CODE: Final = -1_765_328_384  # of the error codes of krb5

_TYPED: Final = re.compile(r"[A-Za-z0-9]{2,}:")  # FILE:/path, KCM:1000
_caches = itertools.count(1)


class KerberosError(ValueError):
    """Kerberos failed. The text says on which side, and what to do next: sentences without the last full stop."""


def gssapi_package() -> Any:
    """Return the package `gssapi`. Raise ConfigError if it is not installed."""
    try:
        import gssapi
    except ImportError as exc:
        raise ConfigError(
            f"sasl_mechanism=GSSAPI needs the package gssapi, which cannot be imported ({exc}). "
            "It comes with an extra, and is built with a compiler and the headers of Kerberos "
            "(Debian: libkrb5-dev). Type: pip install 'kclient-kafka[kerberos]'",
            problems=("sasl_mechanism=GSSAPI needs pip install 'kclient-kafka[kerberos]'",),
        ) from exc
    return gssapi


# --- tickets


@attrs.frozen
class Ticket:
    """What a client authenticates with: the credentials of GSSAPI, whose they are, and how long they are valid."""

    credentials: Any = attrs.field(repr=False)
    principal: str
    seconds: float


@attrs.define(eq=False)
class KerberosLogin:
    """Where the tickets of one client come from: a keytab, or a cache, or without either the environment."""

    service: str  # the first part of the brokers' principals
    principal: str | None = None
    keytab: str | None = None
    cache: str | None = None
    _own_cache: str = ""  # for tickets of the keytab: one in memory, of this client alone

    def acquire(self, left: float = 0.0) -> Ticket:
        """Return a ticket, from a keytab one that is valid for longer than `left` seconds. Raise KerberosError.

        MIT krb5 renews a ticket within its cache once half of its life is over; if it cannot, it keeps the old one
        and says nothing. Then a new cache is used, which says why.
        """
        if self.keytab is None:
            return self._from_cache()
        check_keytab(self.keytab, self.principal)
        if self._own_cache:
            ticket = self._acquire(self._keytab_store())
            if ticket.seconds > left + 1:
                return ticket
        self._own_cache = f"MEMORY:kclient-{next(_caches)}"
        return self._acquire(self._keytab_store())

    def _keytab_store(self) -> dict[str, str]:
        return {"client_keytab": _typed(self.keytab or ""), "ccache": self._own_cache}

    def _from_cache(self) -> Ticket:
        ticket = self._acquire(None if self.cache is None else {"ccache": _typed(self.cache)})
        if ticket.seconds <= 0:
            where = "on this machine" if self.cache is None else f"in the cache {printable(self.cache)}"
            raise KerberosError(f"the ticket {where} has expired. {NEW_TICKET}")
        return ticket

    def _acquire(self, store: dict[str, str] | None) -> Ticket:
        gssapi = gssapi_package()
        try:
            name = None
            if self.principal is not None:
                name = gssapi.Name(self.principal, gssapi.NameType.kerberos_principal)
            kerberos = [gssapi.MechType.kerberos]
            found = gssapi.Credentials(name=name, usage="initiate", store=store, mechs=kerberos)
            return Ticket(found, str(found.name), float(found.lifetime))
        except gssapi.exceptions.ExpiredCredentialsError:
            return Ticket(None, "", 0.0)
        except gssapi.exceptions.GSSError as exc:
            raise KerberosError(describe(exc)) from None


def _typed(path: str) -> str:
    """Return the name of a keytab or cache with its type, as GSSAPI wants it."""
    return path if _TYPED.match(path) else f"FILE:{path}"


# --- keytabs


def check_keytab(keytab: str, principal: str | None) -> None:
    """Raise KerberosError for a keytab that cannot be read, or has no key of the principal.

    GSSAPI says "No credentials cache found" for all of these.
    """
    kind, _, path = _typed(keytab).partition(":")
    if kind.upper() not in ("FILE", "WRFILE"):
        return
    try:
        found = list(dict.fromkeys(keytab_principals(read_local(path, LARGEST_TEXT))))
    except (OSError, ValueError) as exc:
        raise KerberosError(
            f"the keytab {printable(path)} cannot be read on this machine: {problem_of(exc)}. "
            "Correct keyTab in sasl_jaas_config, or let the user of this process read the file"
        ) from None
    if principal is not None and not any(_is_same(each, principal) for each in found):
        names = format_names(found, MOST_PRINCIPALS) or "nothing"
        raise KerberosError(
            f"the keytab {printable(path)} has no key of {printable(principal)}; it has keys of {names}. "
            "Correct principal in sasl_jaas_config, or add the key to the file (ktadd of kadmin)"
        )


def _is_same(found: str, wanted: str) -> bool:
    return found == wanted or ("@" not in wanted and found.rpartition("@")[0] == wanted)


def keytab_principals(content: bytes) -> Iterator[str]:
    """Yield the principal of each key in a keytab of version 2. Raise ValueError if it is none.

    An entry: size, number of name parts, realm, the parts, and the key. A negative size is a hole.
    """
    if content[:2] != b"\x05\x02":
        raise ValueError("it is not a keytab")
    at = 2
    while at + 4 <= len(content):
        size = int.from_bytes(content[at : at + 4], "big", signed=True)
        entry = content[at + 4 : at + 4 + abs(size)]
        if size > 0:
            yield _keytab_principal(entry)
        if size == 0 or len(entry) < abs(size):
            return
        at += 4 + abs(size)


def _keytab_principal(entry: bytes) -> str:
    count, at, parts = int.from_bytes(entry[:2], "big"), 2, list[str]()
    while len(parts) <= count and at < len(entry):
        size = int.from_bytes(entry[at : at + 2], "big")
        parts.append(entry[at + 2 : at + 2 + size].decode("utf-8", "replace"))
        at += 2 + size
    return f"{'/'.join(parts[1:])}@{parts[0]}" if parts else ""


# --- one authentication


class GssapiClient:
    """The client's part of one authentication with a broker on `host`. Every method may wait for a KDC."""

    def __init__(self, ticket: Ticket, service: str, host: str) -> None:
        self._ticket = ticket
        self._service = service
        self._host = host
        self._context: Any = None

    def first(self) -> HiddenBytes:
        """Return the first token: the ticket for the broker. Raise KerberosError."""
        gssapi = gssapi_package()
        try:
            self._context = gssapi.SecurityContext(
                name=gssapi.Name(f"{self._service}@{self._host}", gssapi.NameType.hostbased_service),
                creds=self._ticket.credentials,
                usage="initiate",
                mech=gssapi.MechType.kerberos,
                flags=[
                    gssapi.RequirementFlag.mutual_authentication,
                    gssapi.RequirementFlag.integrity,  # to wrap the last two messages
                    gssapi.RequirementFlag.out_of_sequence_detection,
                ],
            )
            return HiddenBytes(self._context.step() or b"")
        except gssapi.exceptions.GSSError as exc:
            raise KerberosError(describe(exc)) from None

    def verify(self, token: bytes) -> bytes:
        """Check that the broker knows its key, and return the token to send. Raise KerberosError."""
        gssapi = gssapi_package()
        try:
            following = self._context.step(token) or b""
        except gssapi.exceptions.GSSError as exc:
            raise self._unproven(exc) from None
        if not self._context.complete:
            raise KerberosError("the broker wants more steps than Kerberos has. Look into its log")
        return bytes(following)

    def choose_layer(self, offer: bytes) -> bytes:
        """Return the response to the broker's offer of security layers: none, and for whom. Raise KerberosError."""
        gssapi = gssapi_package()
        try:
            layers = self._context.unwrap(offer).message
            if len(layers) != OFFER_BYTES:
                raise KerberosError(
                    f"the broker's offer of security layers has {len(layers)} bytes, not 4. Look into its log"
                )
            if not layers[0] & NO_LAYER:
                raise KerberosError(NO_QOP_AUTH)
            chosen = bytes([NO_LAYER, 0, 0, 0]) + self._ticket.principal.encode()
            return bytes(self._context.wrap(chosen, False).message)
        except gssapi.exceptions.GSSError as exc:
            raise self._unproven(exc) from None

    def _unproven(self, error: Any) -> KerberosError:
        principal = f"{self._service}/{printable(self._host)}"
        return KerberosError(
            f"the broker has not proved that it is {principal} ({printable(_said(error))}). It does not know that "
            "principal's key, or it refuses the ticket, for example because its clock differs by more than five "
            "minutes. Look into the broker's log"
        )


NO_QOP_AUTH: Final = (
    "the broker offers no QoP auth, only integrity or confidentiality (auth-int, auth-conf), which kclient does not "
    "support. Allow auth in the broker's javax.security.sasl.qop, and use SASL_SSL to protect the connection"
)


# --- errors

NEW_TICKET: Final = "Run kinit, or give a keytab in sasl_jaas_config, with which kclient renews the ticket"
_PRINCIPAL: Final = "Compare principal in sasl_jaas_config with the KDC (kadmin: getprinc)"
_KEYTAB: Final = (
    "Its password or key was changed after the keytab was written; write a new one (kadmin: ktadd)"
)
_CLOCKS: Final = "Kerberos allows five minutes; synchronise this machine, the KDC and the brokers (NTP)"
_CACHE: Final = "Let the user of this process read it, or make it again with kinit"
_CONFIG: Final = "Correct krb5.conf, or the file that KRB5_CONFIG names"
_SERVICE: Final = (
    "Compare sasl_kerberos_service_name and the host that the broker advertises with the principals in the broker's "
    "keytab (klist -k); dns_canonicalize_hostname, rdns and domain_realm of krb5.conf change the host's name and realm"
)
ADVICE: Final[dict[int, tuple[str, str]]] = {
    6: ("the KDC does not know this client", _PRINCIPAL),
    7: ("the KDC does not know the broker's principal", _SERVICE),
    14: (
        "the KDC has no key in a common encryption type",
        "Compare permitted_enctypes of krb5.conf, the keytab (klist -ke) and the KDC",
    ),
    18: ("the KDC refuses this client, which is locked or has expired", _PRINCIPAL),
    23: ("the KDC refuses this client, whose password has expired", _PRINCIPAL),
    24: ("the KDC refuses the key of this client", _KEYTAB),
    31: ("the key of this client is not the KDC's", _KEYTAB),
    32: ("the ticket has expired", NEW_TICKET),
    33: ("the ticket is not valid yet", _CLOCKS),
    37: ("the clocks differ too much", _CLOCKS),
    136: ("krb5.conf cannot be read", _CONFIG),
    141: ("there is no ticket on this machine", NEW_TICKET),
    154: ("krb5.conf does not say where the KDC of the realm is", _CONFIG),
    156: (
        "the KDC cannot be reached",
        "Check that it runs, the kdc lines of krb5.conf, and that port 88 is open from here",
    ),
    193: ("the ticket cache cannot be read", _CACHE),
    194: ("the ticket cache cannot be read", _CACHE),
    195: ("there is no ticket on this machine", NEW_TICKET),
    199: ("the ticket cache cannot be read", _CACHE),
    212: ("the ticket cache cannot be read", _CACHE),
    220: ("the name of the KDC does not resolve", _CONFIG),
    224: ("krb5.conf names no default realm", _CONFIG),
}
"""Code of krb5, without its base → who refuses what, and what to look at."""

CACHE_OF_ANOTHER: Final = 39_756_032 - (1 << 32) - FIRST_CODE  # KG_CCACHE_NOMATCH, a code of GSSAPI's own
ADVICE[CACHE_OF_ANOTHER] = ("the ticket in the cache is another principal's", NEW_TICKET)
ELSE: Final = ("GSSAPI failed", "KRB5_TRACE=/dev/stderr shows what the library does")


def describe(error: Any) -> str:
    """Return what an error of GSSAPI means, in the thread in which it happened."""
    what, advice = ADVICE.get(error.min_code - (1 << 32) - FIRST_CODE, ELSE)
    return f"{what} ({printable(_said(error))}). {advice}"


def _said(error: Any) -> str:
    """Return the library's own words: those of krb5, or of GSSAPI where krb5 has none."""
    texts = [*error.get_all_statuses(error.min_code, False)] if error.min_code else []
    words = "; ".join(text for text in texts if text not in ("Success", "Unknown error"))
    return words or "; ".join(error.get_all_statuses(error.maj_code, True))

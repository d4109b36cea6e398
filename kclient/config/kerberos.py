"""The rules between the keys of GSSAPI (Kerberos), and the options of Java's Krb5LoginModule.

useKeyTab, keyTab, principal         the keys of this client; Java asks a ticket cache first, kclient takes the keytab
useTicketCache, ticketCache          tickets that something else renews; without ticketCache that of the environment
serviceName                          in place of sasl.kerberos.service.name
no sasl.jaas.config                  KRB5CCNAME and KRB5_CLIENT_KTNAME, as other programs with Kerberos have it
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kclient.security.jaas import JaasEntry, parse_jaas, shown_module, shown_option
from kclient.security.kerberos import KerberosLogin
from kclient.security.secret import Secret

MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
EXAMPLE: Final = f'{MODULE} required useKeyTab=true keyTab="/etc/app.keytab" principal="app@EXAMPLE.COM";'
PREFIX: Final = "sasl_kerberos_"
RENEWAL: Final = (
    "sasl_kerberos_ticket_renew_window_factor",
    "sasl_kerberos_ticket_renew_jitter",
    "sasl_kerberos_min_time_before_relogin",
)
OF_OTHER_MECHANISMS: Final = ("sasl_username", "sasl_password", "sasl_oauth", "sasl_login_", "scram_")

VALUES: Final = ("keyTab", "ticketCache", "principal", "serviceName")
CHOICES: Final = ("useKeyTab", "useTicketCache")
WITHOUT_EFFECT: Final = ("debug", "doNotPrompt", "refreshKrb5Config", "renewTicket", "storeKey")
"""Either value asks for nothing of a client that never prompts and keeps no keys. Java knows no renewTicket, which much
copied examples have."""
_SHARED: Final = "kclient has one login, which shares no password with another"
FIXED: Final = {
    "isInitiator": (True, "a client always is"),
    "renewTGT": (
        False,
        "kclient does not renew a ticket cache, it reads it again; renew it with kinit -R or k5start, or use a keytab",
    ),
    "useFirstPass": (False, _SHARED),
    "tryFirstPass": (False, _SHARED),
    "storePass": (False, _SHARED),
    "clearPass": (False, _SHARED),
}
"""Option → the only value that kclient accepts, and why."""
OPTIONS: Final = (*VALUES, *CHOICES, *WITHOUT_EFFECT, *FIXED)


def disagreements(values: Mapping[str, Any], changed: list[str]) -> Iterator[str]:
    """Return the contradictions between the keys of a client with GSSAPI, one sentence each."""
    if others := [name for name in changed if name.startswith(OF_OTHER_MECHANISMS)]:
        yield (
            f"{', '.join(others)} would do nothing: sasl_mechanism is GSSAPI (Kerberos), Kafka's default; "
            "write another sasl_mechanism, or leave the rest out"
        )
        return
    entry = None if values["sasl_jaas_config"] is None else parse_jaas(values["sasl_jaas_config"].reveal())
    if entry is not None and entry.module != MODULE:
        yield f"sasl_jaas_config must name {MODULE} for GSSAPI; it names {shown_module(entry.module)}"
        return
    options = {} if entry is None else entry.options
    yield from _service(values["sasl_kerberos_service_name"], options.get("serviceName"))
    yield from () if entry is None else (f"sasl_jaas_config {problem}" for problem in _of_entry(entry))
    idle = [name for name in changed if name in RENEWAL]
    if idle and not _is_true(options, "useKeyTab"):
        yield (
            f"{', '.join(idle)} would do nothing: kclient renews the tickets of a keytab in sasl_jaas_config, "
            "and reads a ticket cache again for each authentication; leave it out"
        )


def _service(key: str | None, option: str | None) -> Iterator[str]:
    if key is None and not option:
        yield (
            "GSSAPI (Kerberos), Kafka's default sasl_mechanism, needs sasl_kerberos_service_name: the first part of "
            "the brokers' principals, mostly kafka. For another mechanism set sasl_mechanism"
        )
    if key is not None and option is not None and key != option:
        yield "sasl_kerberos_service_name and serviceName in sasl_jaas_config differ; keep one"


def _of_entry(entry: JaasEntry) -> Iterator[str]:
    options = entry.options
    for name, value in options.items():
        if name not in OPTIONS:
            yield f"has an option {shown_option(name)}, which Krb5LoginModule does not know"
        elif name not in VALUES and value.lower() not in ("true", "false"):
            yield f"must say true or false for {name}"
        elif name in VALUES and not value.strip():
            yield f"has an empty {name}; leave it out instead"
        elif name in FIXED and (value.lower() == "true") is not FIXED[name][0]:
            yield f"has {name}={value.lower()}, which is refused: {FIXED[name][1]}"
    if not any(_is_true(options, name) for name in CHOICES):
        yield f"must say useKeyTab=true or useTicketCache=true, for example {EXAMPLE}"
    for choice, name in zip(CHOICES, ("keyTab", "ticketCache"), strict=True):
        if name in options and not _is_true(options, choice):
            yield f"has {name}, which does nothing without {choice}=true"
    if _is_true(options, "useKeyTab") and not ("keyTab" in options and "principal" in options):
        yield (
            "must name keyTab and principal with useKeyTab=true. For the keytab of the environment "
            "(KRB5_CLIENT_KTNAME) leave sasl_jaas_config out and set sasl_kerberos_service_name"
        )


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"


def kerberos_login(service: str | None, jaas: Secret | None) -> KerberosLogin:
    """Return where the tickets of a checked configuration come from."""
    options = {} if jaas is None else parse_jaas(jaas.reveal()).options
    return KerberosLogin(
        service=service or options.get("serviceName", ""),
        principal=options.get("principal"),
        keytab=options.get("keyTab"),
        cache=options.get("ticketCache") if not _is_true(options, "useKeyTab") else None,
    )

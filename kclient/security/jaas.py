"""A JAAS entry as Java's `sasl.jaas.config` holds it, read strictly: one login module, its flag, its options.

    org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="secret";

No message ever shows the text: it holds the password.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

KNOWN: Final = (
    "username",
    "password",
    "tokenauth",
    "serviceName",
    "principal",
    "keyTab",
    "useKeyTab",
    "storeKey",
    "clientId",
    "clientSecret",
    "scope",
    "unsecuredLoginStringClaim_sub",
    "oauth.client.id",
    "oauth.client.secret",
    "oauth.scope",
    "oauth.token.endpoint.uri",
    "awsProfileName",
    "awsRoleArn",
    "awsRoleSessionName",
    "awsRoleExternalId",
    "awsRoleAccessKeyId",
    "awsRoleSecretAccessKey",
    "awsRoleSessionToken",
    "awsStsRegion",
    "useTicketCache",
    "ticketCache",
    "renewTGT",
    "renewTicket",
    "doNotPrompt",
    "refreshKrb5Config",
    "isInitiator",
    "useFirstPass",
    "tryFirstPass",
    "storePass",
    "clearPass",
    "debug",
)
"""Options that login modules have. The name of another may be a piece of the password: no text shows it."""
FLAGS: Final = ("required", "requisite", "sufficient", "optional")

_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/"""  # what may stand anywhere
    r"""|(?P<quoted>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<word>[A-Za-z0-9_$.-]+)"""
    r"""|(?P<sign>[=;])""",
    re.DOTALL,
)
_MODULE = re.compile(r"([a-z0-9_]+\.)+[A-Z][A-Za-z0-9]*LoginModule")
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_LETTERS: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


@attrs.frozen
class JaasEntry:
    """A login module by its class name, and its options."""

    module: str = attrs.field(repr=lambda module: repr(shown_module(module)))
    options: dict[str, str] = attrs.field(repr=lambda options: f"<{', '.join(map(shown_option, options))}>")


def shown_module(name: str) -> str:
    """Return how an error names a login module; text unlike a module name may be a misplaced password."""
    return name if _MODULE.fullmatch(name) else "another class"


def shown_option(name: str) -> str:
    """Return how an error names an option."""
    return name if name in KNOWN else "(not shown)"


def parse_jaas(text: str) -> JaasEntry:
    """Read one entry. Raises ValueError with the end of a sentence that begins with the key's name."""
    tokens = _tokens(text)
    if len(tokens) < 3 or tokens[-1] != ("sign", ";"):
        raise ValueError(
            "must be one JAAS entry: a login module, required, its options, and a semicolon at the end"
        )
    (kind, module), (_, flag) = tokens[:2]
    if kind != "word" or flag.lower() not in FLAGS:
        raise ValueError(f"must begin with a login module's class and one of {', '.join(FLAGS)}")
    return JaasEntry(module, _options(tokens[2:-1]))


def _options(tokens: list[tuple[str, str]]) -> dict[str, str]:
    options: dict[str, str] = {}
    for at in range(0, len(tokens), 3):
        group = tokens[at : at + 3]
        kinds = [kind for kind, _ in group]
        if kinds[:1] != ["word"] or group[1:2] != [("sign", "=")] or kinds[2:] not in (["word"], ["quoted"]):
            where = (
                f"after option {shown_option(list(options)[-1])}"
                if options
                else "in front of the first option"
            )
            raise ValueError(
                f'must hold options as name="value" and one semicolon; {where} is something else'
            )
        name = group[0][1]
        if name in options:
            raise ValueError(f"names option {shown_option(name)} twice")
        options[name] = group[2][1]
    return options


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(
                f"cannot be read at character {at + 1}: a quote is missing, or a sign does not belong"
            )
        at = match.end()
        if match.lastgroup is not None:
            found = match[match.lastgroup]
            tokens.append((match.lastgroup, _unquoted(found) if match.lastgroup == "quoted" else found))
    return tokens


def _unquoted(quoted: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code, 8)) if code[0] in "01234567" else _LETTERS.get(code, code)

    return _ESCAPE.sub(character, quoted[1:-1])

"""A client of a schema registry: the schema of an id, and the newest schema of a subject.

Answers are bounded, and redirects are refused: they would carry the password along. A schema never changes under its
id, so each process asks once for each, also if several threads want it. An unknown id is remembered for a minute:
values without the registry's frame may seem to name another id in every record.

These calls block, so a worker thread makes them.
"""

from __future__ import annotations

import base64
import json
import ssl
import unicodedata
import urllib.parse
from collections.abc import Callable
from http import HTTPStatus
from threading import Lock  # noqa: TID251 (threads may want the same schema)
from typing import Any, Final, NamedTuple, TypeAlias

from kclient.errors import ConfigError, ConnectError
from kclient.network.http_client import HttpError, exchange
from kclient.runtime import Runtime
from kclient.security.secret import HiddenText, Secret
from kclient.text import printable

TIMEOUT_SECONDS: Final = 10.0
MAX_RESPONSE_BYTES: Final = 4 << 20
NO_TEXT: Final = ("Cc", "Cs")  # control characters, halves of a pair

UNKNOWN_MS: Final = 60_000
MAX_UNKNOWN: Final = 10_000
# A registry keeps schemas as records, which have 1 MiB at most by default.
MAX_SCHEMA_CHARACTERS: Final = 1 << 20
MAX_KEPT_CHARACTERS: Final = 64 << 20

runtime: Final = Runtime()

Key: TypeAlias = "tuple[str, int, str]"
"""A registry, a schema id, and the form that the schema was asked for in."""

_schemas: Final[dict[Key, RegisteredSchema]] = {}
_unknown: Final[dict[Key, tuple[int, str]]] = {}
"""Which ids the registry refused, when and why; the oldest first."""
_asking: Final[dict[Key, Lock]] = {}
"""The ids that are being asked for: a thread that wants the same one waits for the answer to the first."""


class UnknownSchemaError(Exception):
    """Raised if the registry does not have the schema, or has one of another kind than is wanted."""


class RegisteredSchema(NamedTuple):
    """A schema: AVRO, JSON or PROTOBUF, its text, and whether that refers to other schemas."""

    kind: str
    text: str
    refers: bool


class SchemaRegistry:
    """A schema registry. `credentials` returns `user:password` or `bearer TOKEN` for each request.

    `setting` names where the credentials come from, for errors; `context` verifies the registry's certificate. It
    travels to Spark's workers if it has no context.
    """

    def __init__(
        self,
        url: str,
        credentials: Callable[[], Secret] | None = None,
        setting: str = "auth",
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.url: Final = url.rstrip("/")
        self._credentials = credentials
        self._setting = setting
        self._context = context

    def schema(self, schema_id: int) -> RegisteredSchema:
        """Return the schema of an id. Raises UnknownSchemaError, ConnectError, ConfigError."""
        return self._schema(schema_id, "")

    def descriptor(self, schema_id: int) -> RegisteredSchema:
        """Return the Protobuf schema of an id as a FileDescriptorProto in base64; as text if the registry has no other.

        Raises as `schema` does.
        """
        return self._schema(schema_id, "?format=serialized")

    def _schema(self, schema_id: int, form: str) -> RegisteredSchema:
        key = self.url, schema_id, form
        if (known := _schemas.get(key)) is not None:
            return known
        asking = _asking.setdefault(key, Lock())
        with asking:  # the first one asks, and the others find what it has found
            try:
                return _schemas.get(key) or self._ask_for(key)
            finally:
                _asking.pop(key, None)

    def _ask_for(self, key: Key) -> RegisteredSchema:
        _refuse_again(key)
        _, schema_id, form = key
        try:
            found = self._ask(f"/schemas/ids/{schema_id}{form}", f"schema id {schema_id}")
        except UnknownSchemaError as exc:
            _remember(key, str(exc))
            raise
        _keep(key, found)
        return found

    def subject(self, subject: str, version: str = "latest") -> RegisteredSchema:
        """Return the schema of a subject's version. Raises UnknownSchemaError, ConnectError, ConfigError."""
        name = urllib.parse.quote(subject, safe="")
        return self._ask(
            f"/subjects/{name}/versions/{version}", f"version {version} of the subject {subject}"
        )

    def slow(self, schema_id: int) -> ConnectError:
        """Return the error to raise if requests for unknown ids, this one first, take too long."""
        return ConnectError(
            f"The schema registry {self.url} takes too long to answer that schema ids of one batch are unknown, "
            f"{schema_id} the first of them. The values may have another frame, or another registry. Look at "
            "the formats and at the address of the registry, and try again.",
            stage="tcp",
        )

    def _ask(self, path: str, what: str) -> RegisteredSchema:
        try:
            answer = exchange(
                self.url + path,
                self._headers(),
                most=MAX_RESPONSE_BYTES,
                seconds=TIMEOUT_SECONDS,
                context=self._context,
            )
        except HttpError as exc:
            raise ConnectError(
                f"The schema registry {self.url} does not answer: {printable(str(exc))}. It may be down, or need "
                "another certificate authority (SSL_CERT_FILE). Look at its address.",
                stage="tcp",
            ) from exc
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            raise self._refused(answer.status, what)
        return self._schema_in(answer.body, what)

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if self._credentials is not None:
            headers["Authorization"] = _authorization(self._credentials(), self._setting)
        return headers

    def _refused(self, code: int, what: str) -> Exception:
        if code == 404:
            return UnknownSchemaError(f"{what} is not in the registry")
        if code in (401, 403):
            return ConfigError(
                f"The schema registry {self.url} refuses to give {what} (HTTP {code}). It wants other credentials. "
                f"Set {self._setting}."
            )
        if code < 400:
            return ConfigError(
                f"The schema registry {self.url} sends elsewhere for {what} (HTTP {code}). That is not followed, as it "
                "would take credentials along. Give the address at the end of it instead."
            )
        return ConnectError(
            f"The schema registry {self.url} fails for {what} (HTTP {code}). Look at its log, and try again.",
            stage="tcp",
        )

    def _json_in(self, data: bytes, what: str) -> dict[str, Any]:
        """Return the object in a response. Raise ConnectError for anything else: no record is at fault for that."""
        try:
            response = json.loads(data) if len(data) <= MAX_RESPONSE_BYTES else None
        except (ValueError, RecursionError):
            response = None
        if not isinstance(response, dict):
            raise ConnectError(
                f"The schema registry {self.url} answers for {what} with something else than a JSON object. "
                "A proxy or a login page may stand at this address. Look at it with curl.",
                stage="tcp",
            )
        return response

    def _schema_in(self, data: bytes, what: str) -> RegisteredSchema:
        response = self._json_in(data, what)
        try:
            found = RegisteredSchema(
                str(response.get("schemaType", "AVRO")), response["schema"], bool(response.get("references"))
            )
            found.text.encode()  # half a surrogate pair is not text
            if found.kind != "PROTOBUF":
                json.loads(found.text)
        except (KeyError, AttributeError, ValueError, RecursionError, TypeError):
            raise UnknownSchemaError(
                f"{what} is not an Avro schema, nor another one, according to the registry"
            ) from None
        if len(found.text) > MAX_SCHEMA_CHARACTERS:
            raise UnknownSchemaError(f"{what} has a schema of more than {MAX_SCHEMA_CHARACTERS:,} characters")
        return found


def avro_text(found: RegisteredSchema, what: str) -> str:
    """Return the text of an Avro schema. Raises UnknownSchemaError for one of another kind."""
    if found.kind != "AVRO":
        raise UnknownSchemaError(f"{what} is of the type {printable(found.kind)}")
    if found.refers:
        raise UnknownSchemaError(f"{what} refers to other schemas, which are not followed")
    return found.text


def _refuse_again(key: Key) -> None:
    """Raise UnknownSchemaError for what was refused a short time ago."""
    asked_ms, why = _unknown.get(key, (0, ""))
    if why and 0 <= runtime.wall_ms() - asked_ms < UNKNOWN_MS:
        raise UnknownSchemaError(why)


def _keep(key: Key, found: RegisteredSchema) -> None:
    """Cache a schema, and drop the oldest while all together are too long."""
    _schemas[key] = found
    while len(_schemas) > 1 and sum(len(each.text) for each in list(_schemas.values())) > MAX_KEPT_CHARACTERS:
        _schemas.pop(next(iter(_schemas)), None)


def _remember(key: Key, why: str) -> None:
    _unknown.pop(key, None)
    _unknown[key] = runtime.wall_ms(), why
    while len(_unknown) > MAX_UNKNOWN:
        _unknown.pop(next(iter(_unknown)), None)


def _authorization(secret: Secret, setting: str) -> str:
    """Return the header's text. `setting` names where the secret comes from.

    Raises ConfigError for an unresolved reference, or characters that no header can hold.
    """
    try:
        credentials = HiddenText(secret.reveal().strip("\r\n"))
    except ValueError as exc:
        raise ConfigError(f"{setting} {exc}. Set it where this process runs.") from exc
    bearer = credentials[:7].lower() == "bearer "
    if any(unicodedata.category(sign) in NO_TEXT for sign in credentials) or (
        bearer and not (credentials.isascii() and credentials[7:].strip())
    ):
        raise ConfigError(
            f"{setting} is neither user:password nor bearer TOKEN: it must be one line without control "
            "characters, a token one of ASCII. Look at its text where this process runs; it is not shown here."
        )
    if bearer:
        return f"Bearer {credentials[7:].strip()}"
    return "Basic " + base64.b64encode(credentials.encode()).decode()

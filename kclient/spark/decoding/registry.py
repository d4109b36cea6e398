"""A client of a schema registry: the schema of an id, and the newest schema of a subject.

Answers are bounded, redirects are refused (they would carry the password along), and only https is used unless the
options allow http. A schema never changes under its id, so each process asks once for each. An unknown id is remembered
for a minute: values without the registry's frame may seem to name another id in every record.
"""

from __future__ import annotations

import base64
import json
import unicodedata
import urllib.error
import urllib.parse
from http.client import HTTPException
from typing import Any, Final

import attrs

from kclient.errors import ConfigError, ConnectError
from kclient.network.http_client import BoundedRequest, HttpDeadline, bounded_opener
from kclient.runtime import Runtime
from kclient.security.secret import HiddenText, Secret
from kclient.spark.kafka_keys import secret_of
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
_schemas: Final[dict[tuple[str, int], str]] = {}
_unknown: Final[dict[tuple[str, int], tuple[int, str]]] = {}
"""Which ids the registry refused, when and why; the oldest first."""


class UnknownSchemaError(Exception):
    """Raised if the registry does not have the schema, or has one that is not Avro."""


_opener: Final = bounded_opener()


@attrs.frozen
class SchemaRegistry:
    """A schema registry. `auth` is `user:password`, `bearer TOKEN`, or a reference of the kind in `reference`.

    It travels to workers, which follow the reference where they connect.
    """

    url: str
    auth: str | None = attrs.field(default=None, repr=False)
    reference: str = ""

    def schema(self, schema_id: int) -> str:
        """Return the Avro schema of an id. Raises UnknownSchemaError, ConnectError, ConfigError."""
        key = self.url, schema_id
        if key not in _schemas:
            _refuse_again(key)
            try:
                text = self._ask(f"/schemas/ids/{schema_id}", f"schema id {schema_id}")
            except UnknownSchemaError as exc:
                _remember(key, str(exc))
                raise
            _keep(key, text)
        return _schemas[key]

    def subject(self, subject: str, version: str = "latest") -> str:
        """Return the Avro schema of a subject's version. Raises UnknownSchemaError, ConnectError, ConfigError."""
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

    def _ask(self, path: str, what: str) -> str:
        with HttpDeadline(TIMEOUT_SECONDS) as deadline:
            try:
                with _opener.open(self._request(path, deadline), timeout=TIMEOUT_SECONDS) as response:
                    data = response.read(MAX_RESPONSE_BYTES + 1)
            except urllib.error.HTTPError as exc:
                exc.close()
                raise self._refused(exc.code, what) from None
            except (OSError, HTTPException) as exc:
                raise self._unreachable(exc, deadline) from exc
        if deadline.is_over:  # what was read is a part of it
            raise self._unreachable(TimeoutError("timed out"), deadline)
        return self._schema_in(data, what)

    def _unreachable(self, problem: Exception, deadline: HttpDeadline) -> ConnectError:
        why = f"it took longer than {deadline.seconds:g} s" if deadline.is_over else printable(str(problem))
        return ConnectError(
            f"The schema registry {self.url} does not answer: {why}. It may be down, or need another "
            "certificate authority (SSL_CERT_FILE). Look at its address.",
            stage="tcp",
        )

    def _request(self, path: str, deadline: HttpDeadline) -> BoundedRequest:
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if self.auth is not None:
            headers["Authorization"] = _authorization(secret_of(self.auth, self.reference))
        request = BoundedRequest(self.url + path, headers=headers)
        request.deadline = deadline
        return request

    def _refused(self, code: int, what: str) -> Exception:
        if code == 404:
            return UnknownSchemaError(f"{what} is not in the registry")
        if code in (401, 403):
            return ConfigError(
                f"The schema registry {self.url} refuses to give {what} (HTTP {code}). It wants other credentials. "
                "Set schema.registry.auth, or the same with .env or .file."
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

    def _schema_in(self, data: bytes, what: str) -> str:
        try:
            response: Any = json.loads(data) if len(data) <= MAX_RESPONSE_BYTES else None
            kind, text = response.get("schemaType", "AVRO"), response["schema"]
            json.loads(text)
            text.encode()  # half a surrogate pair is not text
            if len(text) > MAX_SCHEMA_CHARACTERS:
                raise UnknownSchemaError(
                    f"{what} has a schema of more than {MAX_SCHEMA_CHARACTERS:,} characters"
                )
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            raise UnknownSchemaError(f"{what} is not an Avro schema according to the registry") from None
        if kind != "AVRO" or response.get("references"):
            why = (
                f"is of the type {printable(str(kind))}"
                if kind != "AVRO"
                else "refers to other schemas, which are not followed"
            )
            raise UnknownSchemaError(f"{what} {why}")
        return str(text)


def _refuse_again(key: tuple[str, int]) -> None:
    """Raise UnknownSchemaError for what was refused a short time ago."""
    asked_ms, why = _unknown.get(key, (0, ""))
    if why and 0 <= runtime.wall_ms() - asked_ms < UNKNOWN_MS:
        raise UnknownSchemaError(why)


def _keep(key: tuple[str, int], text: str) -> None:
    """Cache a schema, and drop the oldest while all together are too long."""
    _schemas[key] = text
    while len(_schemas) > 1 and sum(map(len, _schemas.values())) > MAX_KEPT_CHARACTERS:
        del _schemas[next(iter(_schemas))]


def _remember(key: tuple[str, int], why: str) -> None:
    _unknown.pop(key, None)
    _unknown[key] = runtime.wall_ms(), why
    while len(_unknown) > MAX_UNKNOWN:
        del _unknown[next(iter(_unknown))]


def _authorization(secret: Secret) -> str:
    """Return the header's text.

    Raises ConfigError for an unresolved reference, or characters that no header can hold.
    """
    try:
        credentials = HiddenText(secret.reveal().strip("\r\n"))
    except ValueError as exc:
        raise ConfigError(f"schema.registry.auth {exc}. Set it where the workers run.") from exc
    bearer = credentials[:7].lower() == "bearer "
    if any(unicodedata.category(sign) in NO_TEXT for sign in credentials) or (
        bearer and not (credentials.isascii() and credentials[7:].strip())
    ):
        raise ConfigError(
            "schema.registry.auth is neither user:password nor bearer TOKEN: it must be one line without control "
            "characters, a token one of ASCII. Look at its text where the workers run; it is not shown here."
        )
    if bearer:
        return f"Bearer {credentials[7:].strip()}"
    return "Basic " + base64.b64encode(credentials.encode()).decode()

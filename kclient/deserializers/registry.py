"""Deserializer of values whose schemas a registry keeps, as the serializers of Java and others write them.

    frame of a value → schema id → asked for once in this process → kind of the schema
    AVRO       Python objects: dicts, lists, numbers, Decimal, datetime; resolved to `schema` if one is given
    JSON       what the document holds; it is not validated, as in Java by default
    PROTOBUF   an object of the class `message`, which protoc made; the frame must name this message

What a record holds can be wrong: BadValueError, and `on_decode_error` decides. That the registry does not answer, or
refuses the credentials, is no fault of a record: ConnectError or ConfigError. The poll stops on the record and raises
a DecodeError with this cause, whatever `on_decode_error` says, and the next poll asks again.

`may_block`: a request takes up to ten seconds, so an AsyncConsumer calls the deserializer in a thread.
"""

from __future__ import annotations

import functools
import json
import ssl
import urllib.parse
from collections.abc import Callable
from typing import Any, ClassVar, Final, Generic, Protocol, Self, TypeVar, overload

from kclient.config.oauth import is_loopback
from kclient.deserializers.avro import AvroReader
from kclient.deserializers.avro_schema import check_defaults, expanded, readable, schema_errors
from kclient.deserializers.elements import MAX_ELEMENTS, BadValueError, reason_of
from kclient.deserializers.frame import FRAME_SIZE, NO_FRAME, indexes_of, message_indexes, schema_id_of
from kclient.deserializers.plain import parse_json
from kclient.errors import ConfigError, ConnectError
from kclient.network.schema_registry import (
    RegisteredSchema,
    SchemaRegistry,
    UnknownSchemaError,
    avro_text,
    runtime,
)
from kclient.security.secret import Secret
from kclient.text import printable
from kclient.types import Headers

V_co = TypeVar("V_co", covariant=True)

MOST_UNKNOWN: Final = 100
"""Ids that the registry does not have; more of them in a minute are an error, for each one costs a request."""
WINDOW_MS: Final = 60_000
KEPT_READERS: Final = 256


class ProtobufMessage(Protocol):
    """A class that protoc has made of a message."""

    DESCRIPTOR: ClassVar[Any]

    @classmethod
    def FromString(cls, data: bytes, /) -> Self:  # noqa: N802 – protobuf's name
        """Parse a message."""
        ...


M = TypeVar("M", bound=ProtobufMessage)


class RegistryDeserializer(Generic[V_co]):
    """Deserializes values by the schema that each names. Make it with `registry()`; consumers may share it."""

    may_block = True

    def __init__(
        self,
        registry: SchemaRegistry,
        schema: str | None,
        message: type[ProtobufMessage] | None,
        max_elements: int,
    ) -> None:
        self._registry = registry
        self._schema = schema
        self._expected = "PROTOBUF" if message is not None else "AVRO" if schema is not None else None
        self._message = None if message is None else _Messages(message)
        self._max_elements = max_elements
        self._unknown = _UnknownIds(registry.url)
        self._reader = functools.lru_cache(KEPT_READERS)(self._make_reader)

    def deserialize(self, topic: str, headers: Headers, data: bytes, /) -> V_co:
        """Return the value. Raise BadValueError, ConnectError, ConfigError."""
        schema_id = schema_id_of(data)
        if schema_id is None:
            raise BadValueError(NO_FRAME)
        value: V_co = self._reader(schema_id)(data)
        return value

    def _make_reader(self, schema_id: int) -> Callable[[bytes], Any]:
        what = f"schema id {schema_id}"
        self._unknown.check(schema_id)
        try:
            found = self._registry.schema(schema_id)
        except UnknownSchemaError as exc:
            self._unknown.note(schema_id)
            raise BadValueError(str(exc)) from None
        try:
            return self._reader_of(found, what)
        except (BadValueError, UnknownSchemaError) as exc:
            return functools.partial(
                _refuse, str(exc)
            )  # kept too: a schema is not parsed again for each value

    def _reader_of(self, found: RegisteredSchema, what: str) -> Callable[[bytes], Any]:
        if self._expected not in (found.kind, None):
            raise BadValueError(
                f"{what} is of the type {printable(found.kind)}, and the deserializer is for {self._expected}"
            )
        if found.kind == "JSON":
            return lambda data: parse_json(data[FRAME_SIZE:])
        if found.kind == "PROTOBUF":
            if self._message is None:
                raise ConfigError(
                    f"The values are Protobuf ({what}), which needs the class that protoc has made of the message. "
                    "Write registry(url, message=Order), or in kclient consume "
                    "--value-format protobuf:frame:*:FILE#MESSAGE."
                )
            return self._message.read
        reader = AvroReader.of(avro_text(found, what), self._schema, objects=True)
        return lambda data: reader.value(data, FRAME_SIZE, self._max_elements, "max_elements")


def _refuse(reason: str, _data: bytes) -> Any:
    raise BadValueError(reason)


class _Messages:
    """Reads messages of one class; the frame must name it among the messages of its file."""

    def __init__(self, kind: type[ProtobufMessage]) -> None:
        self._kind = kind
        self.name: str = kind.DESCRIPTOR.full_name
        self._indexes = _place_of(kind.DESCRIPTOR)

    def read(self, data: bytes) -> Any:
        from google.protobuf.message import DecodeError as DamagedError

        indexes, start = message_indexes(data, FRAME_SIZE)
        if indexes != self._indexes:
            raise BadValueError(
                f"it is not {self.name} but another message of its schema, at {list(indexes)}"
            )
        try:
            return self._kind.FromString(data[start:])
        except (DamagedError, UnicodeDecodeError):
            raise BadValueError(f"it is not a {self.name}") from None


def _place_of(descriptor: Any) -> tuple[int, ...] | None:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    return indexes_of(FileDescriptorProto.FromString(descriptor.file.serialized_pb), descriptor.full_name)


class _UnknownIds:
    """Counts the ids that the registry did not have, to end what would ask for another one with each record."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._since_ms = 0
        self._ids: set[int] = set()

    def check(self, schema_id: int) -> None:
        """Raise ConnectError while there are too many, unless this is one of them: the client remembers it."""
        now = runtime.wall_ms()
        if not 0 <= now - self._since_ms < WINDOW_MS:
            self._since_ms, self._ids = now, set()
        if len(self._ids) >= MOST_UNKNOWN and schema_id not in self._ids:
            raise ConnectError(
                f"The schema registry {self._url} does not have {len(self._ids)} schemas that values named within a "
                "minute, and is not asked for more. The values may have another frame, or another registry. Look at "
                "the topic and at the registry's address, and poll again in a minute.",
                stage="tcp",
            )

    def note(self, schema_id: int) -> None:
        """Count one."""
        self._ids.add(schema_id)


@overload
def registry(
    url: str,
    *,
    message: type[M],
    auth: str | Callable[[], str] | None = None,
    ssl_context: ssl.SSLContext | None = None,
    allow_plaintext_credentials: bool = False,
) -> RegistryDeserializer[M]: ...


@overload
def registry(
    url: str,
    *,
    schema: str | None = None,
    auth: str | Callable[[], str] | None = None,
    ssl_context: ssl.SSLContext | None = None,
    allow_plaintext_credentials: bool = False,
    max_elements: int = MAX_ELEMENTS,
) -> RegistryDeserializer[Any]: ...


def registry(
    url: str,
    *,
    schema: str | None = None,
    message: type[ProtobufMessage] | None = None,
    auth: str | Callable[[], str] | None = None,
    ssl_context: ssl.SSLContext | None = None,
    allow_plaintext_credentials: bool = False,
    max_elements: int = MAX_ELEMENTS,
) -> RegistryDeserializer[Any]:
    """Return a deserializer of values whose schemas are in the registry at `url`.

        Consumer("orders", value_deserializer=registry("https://registry:8081", auth=env("REGISTRY_AUTH")), …)

    Avro needs `[avro]`: each value is read with the schema of its writer, and resolved to `schema` (the text of an Avro
    schema) if that is given. Protobuf needs `[protobuf]` and `message`, the class that protoc has made. `auth` is
    `user:password`, `bearer TOKEN`, or what provides it: `env("NAME")`, `file("path")`, a function. `ssl_context`
    verifies the registry; without it the system's authorities do. `max_elements` bounds the items of arrays and maps
    of one Avro value, fields of records in them included.

    Nothing is asked before the first value. Raise ConfigError for an address, a schema or a class that cannot be used,
    and for credentials over http to another machine.
    """
    if message is not None and schema is not None:
        raise ConfigError("A registry's deserializer has schema for Avro or message for Protobuf, not both.")
    _check_address(url, with_credentials=auth is not None and not allow_plaintext_credentials)
    if schema is not None:
        _check_schema(schema)
    if message is not None and not hasattr(message, "DESCRIPTOR"):
        raise ConfigError(f"message is a class that protoc has made, not {message!r}.")
    credentials = None if auth is None else functools.partial(_secret, Secret(auth))
    found = SchemaRegistry(url, credentials, "auth of registry()", ssl_context)
    return RegistryDeserializer(found, schema, message, max_elements)


def _secret(secret: Secret) -> Secret:
    return secret


def _check_address(url: str, *, with_credentials: bool) -> None:
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
        _ = parts.port
    except ValueError:  # a bracket that is not closed, a port that is none
        usable = False
    if not usable:
        raise ConfigError(
            "The address of a schema registry is such as https://registry:8081, with no user or password in it; "
            "those are auth='user:password'."
        )
    if parts.scheme == "http" and with_credentials and not is_loopback(parts.hostname or ""):
        raise ConfigError(
            f"http://{parts.hostname} would get the credentials in clear text. Use https://, or allow it with "
            "allow_plaintext_credentials=True."
        )


def _check_schema(schema: str) -> None:
    try:
        parsed = json.loads(schema)
        check_defaults(parsed)
        expanded(parsed)
        readable(schema, objects=True)
    except schema_errors() as exc:
        raise ConfigError(
            f"schema is not an Avro schema that can be used: {reason_of(exc)}. Give its text, as JSON."
        ) from exc

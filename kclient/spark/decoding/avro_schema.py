"""Avro schemas as they are given: a file, JSON, or a subject of the registry; and whether values stand in a frame.

orders.avsc                  a file of the driver            {"type": "record", …}   the schema itself
frame:17:orders.avsc         values begin with the registry's frame, and its id must be 17 (or 17,18; * is any)
subject:orders-value[:3]     asked from the registry, the newest version unless one is named
"""

from __future__ import annotations

import functools
import json
from typing import Any, Final

import attrs

from kclient.errors import ConfigError
from kclient.spark.decoding.avro_elements import Elements
from kclient.spark.decoding.avro_nodes import check_defaults, check_size
from kclient.spark.decoding.avro_types import DECIMAL, counted_from_zero, decimal_of, hazard, without_objects
from kclient.spark.decoding.frame import split_frame
from kclient.spark.decoding.schema_file import read_schema_file
from kclient.spark.decoding.values import reason_of

VALUE: Final = "value"
"""The field of the record around every schema."""


@attrs.frozen
class Given:
    """The text of the reader schema, and what the frame must say: None for no frame, empty for any id."""

    text: str
    ids: frozenset[int] | None = None


def given_schema(option: str, written: str) -> Given:
    """What the option says. Raises ConfigError where there is no schema."""
    ids, written = split_frame(option, written)
    return Given(written if written.lstrip()[:1] in ("{", "[", '"') else _file(option, written), ids)


def checked(option: str, text: str) -> Any:
    """The schema with all names expanded. Raises ConfigError for what is no Avro schema."""
    try:
        schema = json.loads(text)
        check_defaults(schema)
        return expanded(schema)
    except schema_errors() as exc:
        raise ConfigError(
            f"{option} is no Avro schema: {reason_of(exc)}. Compare it with what producers use."
        ) from exc


def expanded(schema: Any) -> Any:
    """The schema with the definition in place of each name. Raises ValueError where that is too much."""
    library = avro_library()
    json.dumps(schema, ensure_ascii=False).encode()  # half of a pair is no text
    check_size(library.parse_schema(schema))
    return library.schema.expand_schema(schema)


def schema_errors() -> tuple[type[Exception], ...]:
    """What fastavro and json raise about a text that is no schema."""
    schema = avro_library().schema
    own = (schema.SchemaParseException, schema.UnknownType)
    return ValueError, KeyError, TypeError, RecursionError, *own


@functools.lru_cache(maxsize=256)
def readable(text: str) -> Any:
    """The schema as the reader of values takes it, inside of a record, which adds no byte; parsed once in each process.

    Only a record keeps all that is parsed: other outermost schemas the library would parse again for every value.
    Raises ValueError for one with a hazard.
    """
    if found := hazard(expanded(json.loads(text))):
        raise ValueError(found)
    field = {"name": VALUE, "type": without_objects(json.loads(text))}
    return avro_library().parse_schema({"type": "record", "name": "Outermost", "fields": [field]})


@functools.lru_cache(maxsize=256)
def strict(text: str) -> Any:
    """The same as the schema of a writer: where the bytes name a branch or symbol below zero, that is an error.

    The library takes such a number from the end, as Python does, and reads damaged bytes as another good value.
    """
    return counted_from_zero(readable.__wrapped__(text))


@functools.lru_cache(maxsize=256)
def elements_of(written: str, reader: str | None) -> Elements:
    """What the text of a writer's schema allows, seen from a reader's, None for the same. Both have been `readable`."""
    return Elements.of(
        expanded(json.loads(written)), None if reader is None else expanded(json.loads(reader))
    )


def avro_library() -> Any:
    """fastavro. Raises ConfigError with what to install."""
    try:
        import fastavro
    except ImportError as exc:
        raise ConfigError(
            "The format avro needs fastavro, which cannot be imported. It is not part of the base install. "
            "Type: pip install 'kclient-kafka[avro]', on the workers too."
        ) from exc
    for kind in ("bytes", "fixed"):
        fastavro.read.LOGICAL_READERS[f"{kind}-{DECIMAL}"] = decimal_of
    return fastavro


def _file(option: str, path: str) -> str:
    data = read_schema_file(option, path, "is no JSON, so it names a file")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigError(
            f"{option}: the file {path} is not UTF-8, which JSON is. Give a schema file."
        ) from None

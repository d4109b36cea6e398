"""Which formats the options ask for, made once on the driver: files and the registry's newest schema are read here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kclient.errors import ConfigError
from kclient.spark.choices import Topics
from kclient.spark.decoding.decoder import INSTEAD, Decoder
from kclient.spark.decoding.text import Text
from kclient.spark.decoding.values import Format

if TYPE_CHECKING:
    from kclient.spark.decoding.avro_schema import Given
    from kclient.spark.decoding.registry import Registry
    from kclient.spark.options import SourceOptions

SUBJECT = "subject:"
BY_NAME: Final[Mapping[str, str]] = {}
BY_INGEST: Final[Mapping[str, str]] = {
    "keyFormat": "--options keyFormat",
    "keySchema": "--options keySchema",
    "valueFormat": "--format",
    "valueSchema": "--schema",
    "badRecords": "give --on-bad-record null, or dlq with --dlq parquet:DIR,",
}
"""How `kclient ingest` calls the options: its errors name what was typed. Of bad records, what to do instead."""


class _Part(NamedTuple):
    """Key or value, and how errors call its options."""

    name: str
    form: str
    schema: str


def decoder_of(options: SourceOptions, called: Mapping[str, str] = BY_NAME) -> Decoder | None:
    """What decodes keys and values, None when both are raw. `called` is how errors call options, if not by their names.

    Asks the registry where the reader schema comes from there. Raises ConfigError and ConnectError.
    """
    formats = {
        part: made
        for part, chosen, schema in (
            ("key", options.key_format, options.key_schema),
            ("value", options.value_format, options.value_schema),
        )
        if (made := _format(options, _part(part, called), chosen, schema)) is not None
    }
    instead = called.get("badRecords", INSTEAD)
    return Decoder(formats, options.bad_records, instead) if formats else None


def _part(name: str, called: Mapping[str, str]) -> _Part:
    form, schema = f"{name}Format", f"{name}Schema"
    return _Part(name, called.get(form, form), called.get(schema, schema))


def _format(options: SourceOptions, part: _Part, chosen: str, schema: str | None) -> Format | None:
    match chosen:
        case "raw":
            return None
        case "string":
            return Text()
        case "json" if schema is not None:
            from kclient.spark.decoding.json_values import Json

            return Json.of(part.schema, schema, options.max_elements)
        case "avro":
            from kclient.spark.decoding.avro_values import Avro

            registry = _registry(options)
            given = _avro_schema(options, part, schema, registry)
            return Avro.of(part.schema, given, registry, options.max_elements)
        case "protobuf" if schema is not None and not schema.startswith(SUBJECT):
            from kclient.spark.decoding.protobuf_schema import given_message
            from kclient.spark.decoding.protobuf_values import Protobuf

            return Protobuf.of(given_message(part.schema, schema), options.max_elements)
        case "protobuf":
            raise ConfigError(
                f"{part.form}=protobuf needs {part.schema}=FILE#MESSAGE: a registry is asked for Avro schemas only. "
                "Make the file with protoc --include_imports --descriptor_set_out=FILE; for values in the registry's "
                f"frame write {part.schema}=frame:*:FILE#MESSAGE."
            )
    raise ConfigError(
        f"{part.form}=json needs {part.schema}, the schema as DDL: a registry is asked for Avro schemas only. "
        f"Write it as Spark does, such as {part.schema}='id BIGINT, name STRING'."
    )


def _registry(options: SourceOptions) -> Registry | None:
    from kclient.spark.decoding.registry import Registry

    if options.registry_url is None:
        return None
    return Registry(options.registry_url, options.registry_auth, options.registry_auth_reference)


def _avro_schema(options: SourceOptions, part: _Part, schema: str | None, registry: Registry | None) -> Given:
    """The reader's schema: given, or the newest of the subject, which is `<topic>-value` unless it is named."""
    from kclient.spark.decoding.avro_schema import Given, given_schema
    from kclient.spark.decoding.registry import UnknownSchemaError

    if schema is not None and not schema.startswith(SUBJECT):
        return given_schema(part.schema, schema)
    if registry is None:
        raise ConfigError(
            f"{part.schema}={schema} needs schema.registry.url, where the subject is asked for."
        )
    if schema is None:
        name, version = _usual_subject(options, part), "latest"
    else:
        name, _, version = schema.removeprefix(SUBJECT).partition(":")
    try:
        return Given(registry.subject(name, version or "latest"))
    except UnknownSchemaError as exc:
        raise ConfigError(
            f"{part.form}=avro: {exc}. Name the subject with {part.schema}=subject:NAME, or give the schema."
        ) from exc


def _usual_subject(options: SourceOptions, part: _Part) -> str:
    topics = options.selection.names if isinstance(options.selection, Topics) else ()
    if len(topics) != 1:
        raise ConfigError(
            f"{part.form}=avro has no {part.schema}, and only one topic says which subject of the registry is meant. "
            f"Give {part.schema}=subject:NAME, or read one topic."
        )
    return f"{topics[0]}-{part.name}"

"""Which formats the options ask for, made once on the driver: files and the registry's newest schema are read here.

Spec: spark 3.3, SP-75.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kclient.errors import ConfigError
from kclient.spark.choices import Topics
from kclient.spark.decoding.decoder import Decoder
from kclient.spark.decoding.text import Text
from kclient.spark.decoding.values import Format

if TYPE_CHECKING:
    from kclient.spark.decoding.avro_schema import Given
    from kclient.spark.decoding.registry import Registry
    from kclient.spark.options import SourceOptions

SUBJECT = "subject:"


def decoder_of(options: SourceOptions) -> Decoder | None:
    """What decodes keys and values, None when both are raw.

    Asks the registry where the reader schema comes from there. Raises ConfigError and ConnectError.

    Spec: SP-75.
    """
    formats = {
        part: made
        for part, name, schema in (
            ("key", options.key_format, options.key_schema),
            ("value", options.value_format, options.value_schema),
        )
        if (made := _format(options, part, name, schema)) is not None
    }
    return Decoder(formats, options.bad_records) if formats else None


def _format(options: SourceOptions, part: str, name: str, schema: str | None) -> Format | None:
    option = f"{part}Schema"
    match name:
        case "raw":
            return None
        case "string":
            return Text()
        case "json" if schema is not None:
            from kclient.spark.decoding.json_values import Json

            return Json.of(option, schema)
        case "avro":
            from kclient.spark.decoding.avro_values import Avro

            registry = _registry(options)
            return Avro.of(option, _avro_schema(options, part, schema, registry), registry)
        case "protobuf" if schema is not None and not schema.startswith(SUBJECT):
            from kclient.spark.decoding.protobuf_schema import given_message
            from kclient.spark.decoding.protobuf_values import Protobuf

            return Protobuf.of(given_message(option, schema))
        case "protobuf":
            raise ConfigError(
                f"{part}Format=protobuf needs {option}=FILE#MESSAGE: a registry is asked for Avro schemas only. "
                "Make the file with protoc --include_imports --descriptor_set_out=FILE; for values in the registry's "
                f"frame write {option}=frame:*:FILE#MESSAGE."
            )
    raise ConfigError(
        f"{part}Format=json needs {option}, the schema as DDL: a registry is asked for Avro schemas only. "
        f"Write it as Spark does, such as {option}='id BIGINT, name STRING'."
    )


def _registry(options: SourceOptions) -> Registry | None:
    from kclient.spark.decoding.registry import Registry

    if options.registry_url is None:
        return None
    return Registry(options.registry_url, options.registry_auth, options.registry_auth_reference)


def _avro_schema(options: SourceOptions, part: str, schema: str | None, registry: Registry | None) -> Given:
    """The reader's schema: given, or the newest of the subject, which is `<topic>-value` unless it is named."""
    from kclient.spark.decoding.avro_schema import Given, given_schema
    from kclient.spark.decoding.registry import UnknownSchemaError

    if schema is not None and not schema.startswith(SUBJECT):
        return given_schema(f"{part}Schema", schema)
    if registry is None:
        raise ConfigError(f"{part}Schema={schema} needs schema.registry.url, where the subject is asked for.")
    if schema is None:
        name, version = _usual_subject(options, part), "latest"
    else:
        name, _, version = schema.removeprefix(SUBJECT).partition(":")
    try:
        return Given(registry.subject(name, version or "latest"))
    except UnknownSchemaError as problem:
        raise ConfigError(
            f"{part}Format=avro: {problem}. Name the subject with {part}Schema=subject:NAME, or give the schema."
        ) from problem


def _usual_subject(options: SourceOptions, part: str) -> str:
    topics = options.selection.names if isinstance(options.selection, Topics) else ()
    if len(topics) != 1:
        raise ConfigError(
            f"{part}Format=avro has no {part}Schema, and only one topic says which subject of the registry is meant. "
            f"Give {part}Schema=subject:NAME, or read one topic."
        )
    return f"{topics[0]}-{part}"

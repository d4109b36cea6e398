"""Deserializers to give to a consumer: text, JSON, and what a schema registry describes.

    from kclient.deserializers import json_value, registry, text

    Consumer("orders", key_deserializer=text, value_deserializer=json_value, …)                Consumer[str, Any]
    Consumer("orders", value_deserializer=registry("http://localhost:8081"), …)                Consumer[bytes, Any]
    Consumer("orders", value_deserializer=registry("http://…", message=Order), …)              Consumer[bytes, Order]

Each raises BadValueError for bytes that it cannot decode, which the poll raises as the cause of a DecodeError.

    plain     text and JSON            registry  the deserializer of registered schemas
    frame     schema id before a value  elements  how many elements a value may hold
    avro, avro_schema                  values in Avro, and their schemas; Spark's source reads with them too
    protobuf  messages by a file of descriptors, for Spark and the command line     schema_file  schemas in files
"""

from kclient.deserializers.elements import BadValueError
from kclient.deserializers.plain import json_value, text
from kclient.deserializers.registry import RegistryDeserializer, registry

__all__ = ["BadValueError", "RegistryDeserializer", "json_value", "registry", "text"]

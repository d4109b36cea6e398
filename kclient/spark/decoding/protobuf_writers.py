"""The message of the writer, which a schema registry has under the id in the frame: it names new fields.

The registry is asked for the file as a descriptor (`format=serialized`); one that cannot do that answers with text.
Files that it imports are those of the reader, or protobuf's own: references to other subjects are not followed. Without
the writer's message new fields have numbers alone, which is no fault of a record.
"""

from __future__ import annotations

import base64
import functools
import importlib
from collections.abc import Sequence
from typing import Any, Final

from kclient.deserializers.frame import schema_id_of
from kclient.deserializers.protobuf import MessageSchema, protobuf_library
from kclient.network.schema_registry import RegisteredSchema, SchemaRegistry, UnknownSchemaError
from kclient.runtime import Runtime
from kclient.spark.decoding.formats import MAX_WAIT_MS

runtime: Final = Runtime()
OWN: Final = (
    "any",
    "api",
    "duration",
    "empty",
    "field_mask",
    "source_context",
    "struct",
    "timestamp",
    "type",
    "wrappers",
)


class Writers:
    """The messages of the writers of one batch, by the ids in it.

    Producers choose the ids. Where asking for them takes too long, the other ids of the batch are not asked for.
    """

    def __init__(self, given: MessageSchema, registry: SchemaRegistry | None) -> None:
        self._given = given
        self._registry = None if given.ids is None else registry
        self._found: dict[int, Any] = {}
        self._waited_ms = 0

    def of(self, data: bytes) -> Any:
        """Return the descriptor of the message as the writer of this value has it, None if that is not known.

        Raises ConnectError, ConfigError for a registry that does not answer.
        """
        schema_id = schema_id_of(data)
        if self._registry is None or schema_id is None:
            return None
        if schema_id not in self._found:
            self._found[schema_id] = self._asked(self._registry, schema_id)
        return self._found[schema_id]

    def _asked(self, registry: SchemaRegistry, schema_id: int) -> Any:
        if self._waited_ms > MAX_WAIT_MS:
            return None
        began_ms = runtime.wall_ms()
        try:
            return _message(registry.descriptor(schema_id), self._given)
        except UnknownSchemaError:
            return None
        finally:
            self._waited_ms += runtime.wall_ms() - began_ms


@functools.lru_cache(maxsize=256)
def _message(found: RegisteredSchema, given: MessageSchema) -> Any:
    library = protobuf_library()
    try:
        [file] = _parsed([base64.b64decode(found.text, validate=True)])
        return _message_at(file, given.indexes, given.files)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError, library.message.DecodeError):
        return None  # text, another kind of schema, or a file whose imports are not there


def _message_at(file: Any, indexes: Sequence[int], others: Sequence[bytes]) -> Any:
    """Return the message of a file at the place that the frame names."""
    pool = protobuf_library().descriptor_pool.DescriptorPool()
    known = {file.name: file} | {each.name: each for each in _parsed(others) if each.name != file.name}
    seen: set[str] = set()

    def add(name: str) -> None:
        if name not in seen:
            seen.add(name)
            needed = known[name] if name in known else _own(name)
            for other in needed.dependency:
                add(other)
            pool.AddSerializedFile(needed.SerializeToString())

    add(file.name)
    return pool.FindMessageTypeByName(_name_of(file, indexes))


def _parsed(files: Sequence[bytes]) -> list[Any]:
    return [protobuf_library().descriptor_pb2.FileDescriptorProto.FromString(file) for file in files]


def _own(name: str) -> Any:
    """Return a file of protobuf's own. Raises KeyError for another one."""
    short = name.removeprefix("google/protobuf/").removesuffix(".proto")
    if short not in OWN or name != f"google/protobuf/{short}.proto":
        raise KeyError(name)
    module = importlib.import_module(f"google.protobuf.{short}_pb2")
    return _parsed([module.DESCRIPTOR.serialized_pb])[0]


def _name_of(file: Any, indexes: Sequence[int]) -> str:
    names, within = [file.package] if file.package else [], file.message_type
    for index in indexes:
        names.append(within[index].name)
        within = within[index].nested_type
    return ".".join(names)

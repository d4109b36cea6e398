"""Protobuf messages by a file of descriptors: what Spark's format and `kclient consume` share.

    flights.desc#nyc.Flight               written by `protoc --include_imports --descriptor_set_out=flights.desc`
    frame:17:flights.desc#nyc.Flight      values begin with the registry's frame, and its id must be 17

Only the files that the message needs are kept, each after those that it imports: they travel to Spark's workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from kclient.deserializers.elements import BadValueError
from kclient.deserializers.frame import (
    FRAME_SIZE,
    NO_FRAME,
    indexes_of,
    message_indexes,
    schema_id_of,
    split_frame,
    unexpected_id,
)
from kclient.deserializers.schema_file import read_schema_file
from kclient.errors import ConfigError
from kclient.text import format_names


@attrs.frozen
class MessageSchema:
    """A message, the descriptors it needs, its place in its file, and the ids that its frame may have (see `frame`)."""

    option: str
    message: str
    files: tuple[bytes, ...] = attrs.field(repr=False)
    indexes: tuple[int, ...]
    ids: frozenset[int] | None = None

    def message_in(self, data: bytes) -> bytes:
        """Return the message without its frame, if it has one. Raise BadValueError for the frame of another."""
        if self.ids is None:
            return data
        schema_id = schema_id_of(data)
        if schema_id is None:
            raise BadValueError(NO_FRAME)
        if self.ids and schema_id not in self.ids:
            raise BadValueError(unexpected_id(schema_id))
        indexes, start = message_indexes(data, FRAME_SIZE)
        if indexes != self.indexes:
            raise BadValueError(f"it is another message of its schema, with the indexes {list(indexes)}")
        return data[start:]

    def descriptor(self) -> Any:
        """Return the message's descriptor, in a pool of its own. Raise ConfigError."""
        pool = protobuf_library().descriptor_pool.DescriptorPool()
        try:
            for file in self.files:
                pool.AddSerializedFile(file)
            return pool.FindMessageTypeByName(self.message)
        except (TypeError, KeyError) as exc:
            raise ConfigError(
                f"{self.option} has descriptors that do not fit together: {exc}. Make them with protoc."
            ) from exc


class MessageReader:
    """Reads the messages of one type as protobuf's JSON mapping has them, with the names of the `.proto` file."""

    def __init__(self, schema: MessageSchema) -> None:
        library = protobuf_library()
        self._schema = schema
        self._kind = library.message_factory.GetMessageClass(schema.descriptor())
        self._damaged = library.message.DecodeError

    def __call__(self, data: bytes) -> dict[str, Any]:
        """Return a message as a dict. Raise BadValueError."""
        from google.protobuf import json_format

        try:
            message = self._kind.FromString(self._schema.message_in(data))
            found: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=True)
        except BadValueError:
            raise
        # An Any of a type that the descriptors lack is a TypeError.
        except (self._damaged, json_format.Error, TypeError, ValueError, RecursionError) as exc:
            raise BadValueError(f"it is not a {self._schema.message}") from exc
        return found


def message_schema(option: str, written: str) -> MessageSchema:
    """Return the message schema of an option. Raises ConfigError if there is no such message."""
    ids, schema = split_frame(option, written)
    path, _, message = schema.rpartition("#")
    if not path or not message:
        raise ConfigError(
            f"{option} is not FILE#MESSAGE. Give what protoc --include_imports --descriptor_set_out=FILE wrote, "
            "and the full name of the message, such as flights.desc#nyc.Flight."
        )
    files = {file.name: file for file in _files(option, path)}
    for file in files.values():
        if (indexes := indexes_of(file, message)) is not None:
            needed = _with_imports(option, files, file.name)
            return MessageSchema(
                option, message, tuple(each.SerializeToString() for each in needed), indexes, ids
            )
    raise ConfigError(
        f"{option}: {path} has no message {message}, but {format_names(sorted(_messages(files.values())), 10)}. "
        "Give a full name, with its package."
    )


def protobuf_library() -> Any:
    """Import google.protobuf. Raises ConfigError with the command to install it."""
    try:
        from google import protobuf
        from google.protobuf import descriptor, descriptor_pb2, descriptor_pool, message, message_factory  # noqa: F401
    except ImportError as exc:
        raise ConfigError(
            "The format protobuf needs google.protobuf, which cannot be imported. It is not part of the base install. "
            "Type: pip install 'kclient-kafka[protobuf]', on the workers too."
        ) from exc
    return protobuf


def _files(option: str, path: str) -> Sequence[Any]:
    library = protobuf_library()
    data = read_schema_file(option, path, "names a file before the #")
    try:
        files: Sequence[Any] = library.descriptor_pb2.FileDescriptorSet.FromString(data).file
    except library.message.DecodeError:
        files = ()
    if not files:
        raise ConfigError(
            f"{option}: {path} is not a set of descriptors. "
            f"Make one of .proto files: protoc --include_imports --descriptor_set_out={path} FILE.proto"
        )
    return files


def _with_imports(option: str, files: Mapping[str, Any], name: str) -> list[Any]:
    """Return the file, after all files that it imports."""
    ordered: list[Any] = []
    seen: set[str] = set()
    waiting: list[tuple[str, Any]] = [(name, None)]
    while waiting:
        name, ready = waiting.pop()
        if ready is not None:
            ordered.append(ready)
        elif name not in files:
            raise ConfigError(
                f"{option}: {name} is imported, and the set of descriptors lacks it. "
                "Run protoc with --include_imports."
            )
        elif name not in seen:
            seen.add(name)
            waiting.append((name, files[name]))
            waiting += [(other, None) for other in files[name].dependency]
    return ordered


def _messages(files: Any) -> Iterator[str]:
    for file in files:
        for message in file.message_type:
            yield f"{file.package}.{message.name}".lstrip(".")

"""Protobuf schemas as they are given: a file of descriptors, and which message of it the values are.

    flights.desc#nyc.Flight               what `protoc --include_imports --descriptor_set_out=flights.desc` wrote
    frame:17:flights.desc#nyc.Flight      values begin with the registry's frame, and its id must be 17

Only the files that the message needs travel to workers, in an order in which each stands behind those it imports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from kclient.errors import ConfigError
from kclient.spark.decoding.frame import split_frame
from kclient.spark.decoding.schema_file import read_schema_file
from kclient.text import format_names


@attrs.frozen
class Given:
    """A message, the descriptors it needs, its place in its file, and the ids that its frame may have (see `frame`)."""

    option: str
    message: str
    files: tuple[bytes, ...] = attrs.field(repr=False)
    indexes: tuple[int, ...]
    ids: frozenset[int] | None = None


def given_message(option: str, written: str) -> Given:
    """What the option says. Raises ConfigError where there is no such message."""
    ids, schema = split_frame(option, written)
    path, _, message = schema.rpartition("#")
    if not path or not message:
        raise ConfigError(
            f"{option} is not FILE#MESSAGE. Give what protoc --include_imports --descriptor_set_out=FILE wrote, "
            "and the full name of the message, such as flights.desc#nyc.Flight."
        )
    files = {file.name: file for file in _files(option, path)}
    for file in files.values():
        if (indexes := _indexes(file, message)) is not None:
            needed = _with_imports(option, files, file.name)
            return Given(option, message, tuple(each.SerializeToString() for each in needed), indexes, ids)
    raise ConfigError(
        f"{option}: {path} has no message {message}, but {format_names(sorted(_messages(files.values())), 10)}. "
        "Give a full name, with its package."
    )


def protobuf_library() -> Any:
    """google.protobuf. Raises ConfigError with what to install."""
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
            f"{option}: {path} is no set of descriptors. "
            f"Make one of .proto files: protoc --include_imports --descriptor_set_out={path} FILE.proto"
        )
    return files


def _indexes(file: Any, message: str) -> tuple[int, ...] | None:
    """Where the message stands: the how manieth of the file, and of the message around it."""
    prefix = f"{file.package}." if file.package else ""
    if not message.startswith(prefix):
        return None
    found: list[int] = []
    within = file.message_type
    for part in message.removeprefix(prefix).split("."):
        index = next((number for number, each in enumerate(within) if each.name == part), None)
        if index is None:
            return None
        found.append(index)
        within = within[index].nested_type
    return tuple(found)


def _with_imports(option: str, files: Mapping[str, Any], name: str) -> list[Any]:
    """The file, behind all that it imports."""
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

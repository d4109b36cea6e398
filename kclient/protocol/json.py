"""Messages as JSON, in the format of Kafka's own tools.

* Keys are the schema's names with the first letter lowered; only fields of the version are present, and a tagged
  field with its default value is left out.
* `bytes` are base64, a uuid is URL-safe base64 without padding, int64 values are plain numbers.
* A records field shows its size as `<name>SizeInBytes`, or `<name>: null`. The bytes are passed separately,
  as are unknown tags: see `records_of` and `unknown_tags_of`, and the keywords of `from_json`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kclient.errors import ProtocolEncodeError
from kclient.protocol.message import Field, Message, Struct, within
from kclient.protocol.registry import check_version, message_class
from kclient.protocol.write_failure import fits, unfit

Json = dict[str, Any]
# Path ("" at the top, responses[0].partitions[1]) → tag → bytes.
UnknownTags = Mapping[str, Mapping[int, bytes]]


def to_json(message: Message, version: int) -> Json:
    """Return the fields of the message in `version`. Raise ProtocolEncodeError for a version that it does not have."""
    check_version(type(message), version)
    return _struct_to_json(message, version)


def _struct_to_json(value: Struct, version: int) -> Json:
    fields: Json = {}
    blank = type(value)()
    for field in type(value).FIELDS:
        held = getattr(value, field.name)
        if not within(version, field.versions):
            continue
        if within(version, field.tagged) and _is_default(held, field, blank):
            continue
        if field.wire_type == "records" and held is not None:
            fields[f"{field.json_name}SizeInBytes"] = len(held)
        else:
            fields[field.json_name] = _value_to_json(held, field, version)
    return fields


def _is_default(held: Any, field: Field, blank: Struct) -> bool:
    if held == getattr(blank, field.name):
        return True
    return field.none_is_default and field.struct is not None and bool(held == field.struct())


def _value_to_json(held: Any, field: Field, version: int) -> Any:
    if held is None:
        return None
    if field.is_array:
        return [_element_to_json(one, field, version) for one in held]
    return _element_to_json(held, field, version)


def _element_to_json(one: Any, field: Field, version: int) -> Any:
    if field.struct is not None:
        return _struct_to_json(one, version)
    if field.element == "bytes":
        return base64.b64encode(one).decode()
    if field.element == "uuid":
        return base64.urlsafe_b64encode(one).decode().rstrip("=")
    return one


def records_of(message: Message) -> list[bytes | None]:
    """Return the bytes of the message's records fields, in wire order."""
    fields = ((struct, field) for _, struct in _walk(message, "") for field in type(struct).FIELDS)
    held = [getattr(struct, field.name) for struct, field in fields if field.wire_type == "records"]
    return [None if one is None else bytes(one) for one in held]


def unknown_tags_of(message: Message) -> dict[str, dict[int, bytes]]:
    """Return the message's unknown tags by the path of the struct that holds them."""
    return {path: dict(struct.unknown_tags) for path, struct in _walk(message, "") if struct.unknown_tags}


def from_json(
    name: str,
    version: int,
    fields: Mapping[str, Any],
    *,
    records: Sequence[bytes | None] | None = None,
    unknown_tags: UnknownTags | None = None,
) -> Message:
    """Return the message for JSON in the format of `to_json`; a missing field gets its default.

    `records` are the bytes of the records fields in wire order, `unknown_tags` maps paths to tags. Raise
    ProtocolEncodeError for an unknown version or key and for a value that does not fit its type.
    """
    kind = message_class(name)
    check_version(kind, version)
    reader = _FromJson(name, version, iter(records or ()), dict(unknown_tags or {}))
    message = reader.struct(kind, fields, "")
    reader.finish()
    if not isinstance(message, Message):
        raise reader.refuse("", "is not a message")
    return message


class _FromJson:
    """Builds one message from JSON."""

    def __init__(self, name: str, version: int, records: Iterator[bytes | None], tags: Json) -> None:
        self.name = name
        self.version = version
        self.records = records
        self.tags = tags

    def struct(self, kind: type[Struct], fields: Any, path: str) -> Struct:
        if not isinstance(fields, Mapping):
            raise self.refuse(path, f"{type(fields).__name__} instead of an object")
        left = dict(fields)
        value = kind()
        for field in kind.FIELDS:
            if not within(self.version, field.versions):
                continue
            here = f"{path}.{field.json_name}" if path else field.json_name
            if field.wire_type == "records":
                left.pop(field.json_name, None)
                left.pop(f"{field.json_name}SizeInBytes", None)
                setattr(value, field.name, next(self.records, None))
            elif field.json_name in left:
                setattr(value, field.name, self.value(left.pop(field.json_name), field, here))
        if left:
            raise self.refuse(
                f"{path}.{next(iter(left))}".lstrip("."), f"version {self.version} has no such field"
            )
        value.unknown_tags = tuple(sorted(self.tags.pop(path, {}).items()))
        return value

    def value(self, given: Any, field: Field, path: str) -> Any:
        if given is None:
            if within(self.version, field.nullable) or field.none_is_default:
                return None
            raise self.refuse(path, f"version {self.version} has no null here")
        if not field.is_array:
            return self.element(given, field, path)
        if not isinstance(given, list):
            raise self.refuse(path, f"{type(given).__name__} instead of a list")
        return [self.element(one, field, f"{path}[{index}]") for index, one in enumerate(given)]

    def element(self, given: Any, field: Field, path: str) -> Any:
        if field.struct is not None:
            return self.struct(field.struct, given, path)
        try:
            if field.element == "bytes":
                given = base64.b64decode(given, validate=True)
            elif field.element == "uuid":
                given = base64.b64decode(given + "==", altchars=b"-_", validate=True)
        except (ValueError, TypeError) as exc:
            raise self.refuse(path, f"this {type(given).__name__} is not base64") from exc
        if not fits(given, field.element):
            raise self.refuse(path, unfit(given, field.element))
        return given

    def finish(self) -> None:
        if next(self.records, self) is not self:
            raise self.refuse("", "more records than records fields")
        if self.tags:
            raise self.refuse(next(iter(self.tags)), "unknown tags for a struct that is not there")

    def refuse(self, path: str, reason: str) -> ProtocolEncodeError:
        text = f"{self.name} version {self.version} cannot be made from JSON: {path or 'message'}: {reason}"
        return ProtocolEncodeError(text, message=self.name, version=self.version, field=path)


def _walk(value: Struct, path: str) -> Iterable[tuple[str, Struct]]:
    yield path, value
    for field in type(value).FIELDS:
        held = getattr(value, field.name)
        if field.struct is None or held is None:
            continue
        here = f"{path}.{field.json_name}" if path else field.json_name
        if field.is_array:
            for index, one in enumerate(held):
                yield from _walk(one, f"{here}[{index}]")
        else:
            yield from _walk(held, here)

"""A parsed schema as frozen objects: messages, structs, fields, with version ranges as intervals.

Ranges are those of the file, except that every one ends with the message: `"3+"` of a message whose versions
are 0–9 is the interval 3–9. `codegen.parse` makes these objects and refuses what does not hold together.
"""

from __future__ import annotations

from attrs import field, frozen

from codegen.names import camel_case, snake_case
from codegen.versions import Versions

INTEGERS = {"int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8}
SCALARS = (*INTEGERS, "bool", "float64", "string", "bytes", "uuid", "records")

Scalar = int | float | bool | str | bytes


@frozen
class StructSpec:
    """A named group of fields; `versions` are the versions that contain it."""

    name: str
    versions: Versions
    fields: tuple[FieldSpec, ...]
    about: str = ""


@frozen
class FieldSpec:
    """One field. `element` is its type without the array brackets; `struct` is set where that is a struct."""

    name: str
    element: str
    array: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int | None
    never_compact: bool
    default: Scalar | None  # the value itself; None for null, an empty list and a struct at its defaults
    default_is_null: bool
    ignorable: bool
    about: str = ""
    struct: StructSpec | None = None
    map_key: bool = False
    entity_type: str = ""
    sensitive: bool = False  # never in a repr

    @property
    def python_name(self) -> str:
        return snake_case(self.name)

    @property
    def json_name(self) -> str:
        return camel_case(self.name)

    @property
    def type(self) -> str:
        return f"[]{self.element}" if self.array else self.element

    @property
    def lazy(self) -> bool:
        """Whether None stands for a struct with default values, which is not written: a tagged, non-nullable struct."""
        return (
            self.struct is not None and not self.array and not self.nullable and self.tagged == self.versions
        )

    @property
    def optional(self) -> bool:
        """Whether the Python type includes None, which some versions cannot encode."""
        return bool(self.nullable) or self.default_is_null or self.lazy


@frozen
class MessageSpec:
    """One schema file. `structs` holds every struct, each after those it contains."""

    file: str
    name: str
    type: str
    api_key: int | None
    versions: Versions
    flexible: Versions
    body: StructSpec
    structs: tuple[StructSpec, ...] = field(repr=False)
    about: str = ""

    @property
    def module(self) -> str:
        return snake_case(self.name)

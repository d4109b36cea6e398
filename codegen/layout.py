"""The encoding of a struct in one version: spec × version → steps, and the versions that share them.

A layout is named by its first version. Two versions have the same layout when every step is the same, those of
nested structs included; a version that only changes what the fields mean gets no code of its own.
"""

from __future__ import annotations

from attrs import define, field, frozen

from codegen.spec import INTEGERS, FieldSpec, MessageSpec, StructSpec

CODES = {
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "bool": "?",
    "float64": "d",
    "uuid": "16s",
}
WIDTHS = {**INTEGERS, "bool": 1, "float64": 8, "uuid": 16}


@frozen
class Step:
    """The encoding of one field. `layout` is that of the struct (or of the array's elements)."""

    field: FieldSpec
    kind: str  # fixed, string, bytes, records, struct or array
    compact: bool
    nullable: bool
    layout: Layout | None = None

    @property
    def shape(self) -> tuple[object, ...]:
        return self.field.name, self.compact, self.nullable, self.layout and self.layout.version

    @property
    def element_size(self) -> int:
        """The minimum number of bytes of one element of the array, or of the value itself."""
        if self.layout is not None:
            return self.layout.size
        if self.field.element in WIDTHS:
            return WIDTHS[self.field.element]
        return 1 if self.compact else 2

    @property
    def refuses_null(self) -> bool:
        """Whether this version must refuse null although the class allows it."""
        return self.field.optional and not self.nullable and not self.field.lazy

    @property
    def size(self) -> int:
        """The minimum number of bytes of the whole step."""
        if self.kind in ("array", "bytes", "records"):
            return 1 if self.compact else 4
        return 1 if self.kind == "struct" and self.nullable else self.element_size


@frozen
class Layout:
    """One struct in the versions that share these steps; `absent` are the fields that they lack."""

    struct: StructSpec
    version: int
    flexible: bool
    steps: tuple[Step, ...]
    tagged: tuple[Step, ...]
    absent: tuple[FieldSpec, ...]

    @property
    def has_records(self) -> bool:
        """Whether it contains record batches: their bytes stay a view of the data, so that must be a memoryview."""
        return any(step.kind == "records" or (step.layout and step.layout.has_records) for step in self.steps)

    @property
    def size(self) -> int:
        return sum(step.size for step in self.steps) + self.flexible


@define
class Layouts:
    """All layouts of a message: `bodies` by version, `distinct` with each one after those it uses."""

    message: MessageSpec
    bodies: dict[int, Layout] = field(factory=dict)
    distinct: list[Layout] = field(factory=list)
    _known: dict[object, Layout] = field(factory=dict)
    _versions: dict[object, set[int]] = field(factory=dict)

    def versions_of(self, layout: Layout) -> list[int]:
        """Return the versions that share a layout, in ascending order."""
        return sorted(self._versions[layout.struct.name, layout.version])

    def of(self, struct: StructSpec, version: int) -> Layout:
        present = [spec for spec in struct.fields if version in spec.versions]
        tagged = [spec for spec in present if version in spec.tagged]
        steps = tuple(self._step(spec, version) for spec in present if spec not in tagged)
        tagged_steps = tuple(self._step(spec, version) for spec in sorted(tagged, key=_tag))
        flexible = version in self.message.flexible
        shape = (
            struct.name,
            flexible,
            tuple(step.shape for step in steps),
            tuple(step.shape for step in tagged_steps),
        )
        if shape not in self._known:
            absent = tuple(spec for spec in struct.fields if spec not in present)
            layout = Layout(struct, version, flexible, steps, tagged_steps, absent)
            self._known[shape] = layout
            self.distinct.append(layout)
        layout = self._known[shape]
        self._versions.setdefault((struct.name, layout.version), set()).add(version)
        return layout

    def _step(self, spec: FieldSpec, version: int) -> Step:
        layout = self.of(spec.struct, version) if spec.struct else None
        kind = "array" if spec.array else "struct" if layout else spec.element
        return Step(
            field=spec,
            kind="fixed" if kind in CODES else kind,
            compact=version in self.message.flexible and not spec.never_compact,
            nullable=version in spec.nullable,
            layout=layout,
        )


def layouts(message: MessageSpec) -> Layouts:
    """Return every layout of the message, for all versions."""
    found = Layouts(message)
    for version in message.versions.numbers():
        found.bodies[version] = found.of(message.body, version)
    return found


def _tag(spec: FieldSpec) -> int:
    return -1 if spec.tag is None else spec.tag

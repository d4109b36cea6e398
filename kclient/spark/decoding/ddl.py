"""A schema as Spark's DDL writes it, read into an Arrow type without Spark.

    type   = name | decimal(p, s) | array<type> | map<type, type> | struct<field, …>
    field  = name [:] type [COMMENT 'text']            a bare list of fields is a struct

NOT NULL is refused: whatever cannot be read becomes null, so no column can promise it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NoReturn

import pyarrow as pa

from kclient.errors import ConfigError
from kclient.spark.decoding.spark_types import NAMES, list_of, map_of

DEEPEST: Final = 50
_TOKEN: Final = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|('(?:[^'\\]|\\.)*')|([^\W]+)|([<>(),:])|(\S))")

SIMPLE: Final = {name: kind for kind, name in NAMES.items()} | {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "real": pa.float32(),
    "timestamp_ltz": pa.timestamp("us", tz="UTC"),
}
NO_MORE: Final[Mapping[str, pa.DataType]] = {}


def parse_ddl(option: str, text: str, more: Mapping[str, pa.DataType] = NO_MORE) -> pa.DataType:
    """The type that the option's text describes: `a INT, b ARRAY<STRING>`, `struct<a:int>` or any single type.

    `more` are simple types beside Spark's. Raises ConfigError that says where the text goes wrong.
    """
    parser = _Parser(option, text, more)
    return parser.whole_type() if re.match(r"\s*\w+\s*(<|\(|$)", text) else parser.whole_fields()


class _Parser:
    def __init__(self, option: str, text: str, more: Mapping[str, pa.DataType]) -> None:
        self._option = option
        self._simple = {**SIMPLE, **more}
        self._text = text
        self._tokens = [
            (match[0].strip(), match.start(match.lastindex or 0)) for match in _TOKEN.finditer(text)
        ]
        self._next = 0
        self._depth = 0

    def whole_type(self) -> pa.DataType:
        kind = self._type()
        return kind if self._peek() == "" else self._fail("the end")

    def whole_fields(self) -> pa.DataType:
        kind = self._fields()
        return kind if self._peek() == "" else self._fail("a comma or the end")

    def _type(self) -> pa.DataType:
        self._depth += 1
        if self._depth > DEEPEST:
            self._fail(f"no more than {DEEPEST} types inside each other")
        name = self._peek().lower()
        if name == "decimal":
            kind = self._decimal()
        elif name == "array":
            kind = list_of(self._inside(1)[0])
        elif name == "map":
            kind = map_of(*self._inside(2))
        elif name == "struct":
            self._take("struct", "<")
            kind = self._fields()
            self._take(">")
        elif name in self._simple:
            self._next += 1
            kind = self._simple[name]
        else:
            self._fail(f"a type ({', '.join(sorted(NAMES.values()))}, decimal, array, map, struct)")
        self._depth -= 1
        return kind

    def _inside(self, count: int) -> list[pa.DataType]:
        self._next += 1
        self._take("<")
        kinds = [self._type()]
        for _ in range(count - 1):
            self._take(",")
            kinds.append(self._type())
        self._take(">")
        return kinds

    def _decimal(self) -> pa.DataType:
        self._next += 1
        precision, scale = 10, 0
        if self._peek() == "(":
            self._take("(")
            precision = self._number()
            if self._peek() == ",":
                self._take(",")
                scale = self._number()
            self._take(")")
        if not 1 <= precision <= 38 or scale > precision:
            self._fail("a decimal of at most 38 digits, no more of them behind the point than there are")
        return pa.decimal128(precision, scale)

    def _fields(self) -> pa.DataType:
        fields = [self._field()]
        while self._peek() == ",":
            self._next += 1
            fields.append(self._field())
        names = [field.name for field in fields]
        if len(set(names)) < len(names):
            self._fail("every name once")
        return pa.struct(fields)

    def _field(self) -> pa.Field:
        name = self._peek()
        if not re.match(r"[\w`]", name):
            self._fail("the name of a field")
        self._next += 1
        if self._peek() == ":":
            self._next += 1
        kind = self._type()
        if self._peek().upper() == "NOT":
            self._fail("no NOT NULL: what cannot be read becomes null")
        if self._peek().upper() == "COMMENT":
            self._next += 2
        return pa.field(name[1:-1].replace("``", "`") if name[0] == "`" else name, kind)

    def _number(self) -> int:
        digits = self._peek()
        if not re.fullmatch(r"[0-9]{1,4}", digits):
            self._fail("a number")
        self._next += 1
        return int(digits)

    def _peek(self) -> str:
        return self._tokens[self._next][0] if self._next < len(self._tokens) else ""

    def _take(self, *wanted: str) -> None:
        for token in wanted:
            if self._peek().lower() != token:
                self._fail(repr(token))
            self._next += 1

    def _fail(self, wanted: str) -> NoReturn:
        at = self._tokens[self._next][1] if self._next < len(self._tokens) else len(self._text)
        found = repr(self._peek()[:40]) if self._peek() else "the end"
        raise ConfigError(
            f"{self._option} is no schema that can be read: at character {at + 1} there is {found}, expected {wanted}. "
            "Write it as Spark does, such as `id BIGINT, name STRING, tags ARRAY<STRING>`."
        )

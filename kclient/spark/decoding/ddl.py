"""Arrow types, Spark's names for them, and a parser of Spark's DDL that needs no Spark.

    type   = name | decimal(p, s) | array<type> | map<type, type> | struct<field, …>
    field  = name [:] type [COMMENT 'text']            a bare list of fields is a struct; a text may be in "quotes" too

NOT NULL is refused: a value that cannot be read becomes null, so no column can promise it.

Every field is nullable, lists name their element and times are microseconds, as in the Arrow schemas that Spark makes:
it compares the first batch with its own schema and refuses another spelling of the same type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NoReturn

import pyarrow as pa

from kclient.errors import ConfigError, InternalError

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ: Final = pa.timestamp("us")

NAMES: Final = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    TIMESTAMP: "timestamp",
    TIMESTAMP_NTZ: "timestamp_ntz",
}


def list_of(item: pa.DataType) -> pa.DataType:
    """Return Spark's array of nullable elements."""
    return pa.list_(pa.field("element", item))


def map_of(key: pa.DataType, value: pa.DataType) -> pa.DataType:
    """Return Spark's map with nullable values."""
    return pa.map_(pa.field("key", key, nullable=False), pa.field("value", value))


def spark_name(kind: pa.DataType, *, quoted: bool = False) -> str:
    """Return the type as Spark's `simpleString` writes it, or `quoted`, as its parser reads any field name."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_map(kind):
        key, item = spark_name(kind.key_type, quoted=quoted), spark_name(kind.item_type, quoted=quoted)
        return f"map<{key},{item}>"
    if pa.types.is_list(kind):
        return f"array<{spark_name(kind.value_type, quoted=quoted)}>"
    if pa.types.is_struct(kind):
        fields = (
            f"{_quoted(f.name) if quoted else f.name}:{spark_name(f.type, quoted=quoted)}" for f in kind
        )
        return f"struct<{','.join(fields)}>"
    if kind not in NAMES:
        raise InternalError(f"The Arrow type {kind} has no Spark type. Report this.")
    return NAMES[kind]


def refuse_type(option: str, path: str, why: str) -> NoReturn:
    """Raise ConfigError for a part of a schema that no column can hold."""
    where = f"field {path}" if path else "the schema"
    raise ConfigError(
        f"{option}: {where} {why}. Leave it out of a reader schema of your own, or take the column raw.",
        problems=(f"{where} {why}",),
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


# --- the parser ------------------------------------------------------------------------------------------------------


DEEPEST: Final = 50
_NAME: Final = re.compile(r"\w+|`(?:[^`]|``)+`")
_TEXT: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_TOKEN: Final = re.compile(rf"\s*(?:({_NAME.pattern})|({_TEXT.pattern})|(\S))", re.DOTALL)

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
    """Parse a type from an option's text: `a INT, b ARRAY<STRING>`, `struct<a:int>` or any single type.

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
            self._fail("a decimal of at most 38 digits, no more of them after the point than there are")
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
        if not _NAME.fullmatch(name):
            self._fail("the name of a field")
        self._next += 1
        if self._peek() == ":":
            self._next += 1
        kind = self._type()
        if self._peek().upper() == "NOT":
            self._fail("no NOT NULL: what cannot be read becomes null")
        if self._peek().upper() == "COMMENT":
            self._comment()
        return pa.field(name[1:-1].replace("``", "`") if name[0] == "`" else name, kind)

    def _comment(self) -> None:
        self._next += 1
        if not _TEXT.fullmatch(self._peek()):
            self._fail("the text of the comment in quotes")
        while _TEXT.fullmatch(self._peek()):  # 'it''s' is one text
            self._next += 1

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
            f"{self._option} cannot be parsed as a schema: at character {at + 1} there is {found}, expected {wanted}. "
            "Write it as Spark does, such as `id BIGINT, name STRING, tags ARRAY<STRING>`."
        )

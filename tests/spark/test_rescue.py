"""Fields of JSON that the schema does not name are kept as they came."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.spark.decoding import json_format
from kclient.spark.decoding.json_format import JsonFormat
from kclient.spark.decoding.json_new_fields import new_fields_of

FORM = JsonFormat.of(
    "valueSchema",
    "a BIGINT, o STRUCT<x: BIGINT, p: STRUCT<q: STRING>>, l ARRAY<STRUCT<m: BIGINT>>, "
    "d ARRAY<ARRAY<STRUCT<m: BIGINT>>>, f DOUBLE, g ARRAY<DOUBLE>",
)


def left(*values: bytes | None) -> list[str | None]:
    """What is kept of values that are all good, and as good without new fields asked for."""
    array = pa.array(values, pa.binary())
    found = FORM.decode(array, new_fields=True)
    assert found.bad == {}
    assert FORM.decode(array).bad == {}
    return [found.new.get(row) for row in range(len(values))]


def nothing_left(value: bytes) -> None:
    """A bad value leaves nothing, and what is beside it is kept."""
    found = FORM.decode(pa.array([value, b'{"new": 1}']), new_fields=True)
    assert (list(found.bad), found.new) == ([0], {1: '{"new":1}'})


@pytest.mark.spec("SP-87")
def test_what_the_schema_does_not_name_is_kept_at_its_place() -> None:
    assert left(
        b'{"a": 1, "b": [1, {"c": null}], "o": {"x": 1, "y": 2.5}}',
        b'{"a": 1, "o": {"p": {"q": "", "r": "\xc3\xbc"}}}',
        b'{"A": 1, "nothing": null}',
    ) == ['{"b":[1, {"c": null}],"o":{"y":2.5}}', '{"o":{"p":{"r":"ü"}}}', '{"A":1,"nothing":null}']


@pytest.mark.spec("SP-87")
def test_nothing_is_kept_where_the_schema_names_all_or_nothing_can_be_read() -> None:
    assert left(b'{"a": 1, "o": {"x": 1}}', b"{}", None, b"null") == [None] * 4


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize(
    "value",
    [b"nonsense", b"\xff", b"[1]", b'{"a": "no number", "b": 1}', b'{"n":1e999}', b'{"x":"\\ud800","b":1}',
     b'{"\\ud800":1}', b'{"a":1,"a":2,"b":1}'],
)  # fmt: skip
def test_nothing_is_kept_of_a_bad_value(value: bytes) -> None:
    nothing_left(value)


@pytest.mark.spec("SP-87")
def test_items_of_arrays_keep_their_place() -> None:
    assert left(
        b'{"l": [{"m": 1}, {"m": 1, "n": 2}, null], "d": [[], [ {"m": 1 } ,{"n": [3]} ]]}',
        b'{"l": [{"m": 1}], "d": [null, [{}]]}',
        b'{"l": [], "d": [[]]}',
    ) == ['{"l":[null,{"n":2},null],"d":[null,[null,{"n":[3]}]]}', None, None]
    form = JsonFormat.of("valueSchema", "ARRAY<STRUCT<m: BIGINT>>")
    found = form.decode(pa.array([b'[{"m": 1}]', b'[{"m": 1, "n": 2}, null]', b"[]"]), new_fields=True)
    assert found.array.to_pylist() == [[{"m": 1}], [{"m": 1}, None], []]
    assert found.new == {1: '[{"n":2},null]'}
    assert form.decode(pa.array([b'[{"m": 1}],"w":2', b'[{"n": 1}]']), new_fields=True).new == {
        1: '[{"n":1}]'
    }


@pytest.mark.spec("SP-87")
def test_the_text_is_the_documents_own() -> None:
    """Numbers keep all digits."""
    most = b"1" * 5_000
    assert left(b'{"n":12345678901234567.89,"m":-0.10E+2}') == ['{"n":12345678901234567.89,"m":-0.10E+2}']
    assert left(b'{"n":%s}' % most) == ['{"n":' + most.decode() + "}"]


@pytest.mark.spec("SP-87")
def test_what_others_do_not_take_for_json_is_kept_as_a_string() -> None:
    assert left(b'{"x":NaN,"y":[-Infinity, 1],"z":{"a":1,"a":2},"w":1}') == [
        '{"x":"NaN","y":"[-Infinity, 1]","z":"{\\"a\\":1,\\"a\\":2}","w":1}'
    ]
    assert left(b'{"x":1,"x":2}') == ['{"x":2}']  # as Python reads a name that stands twice


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize("number", [b"Inf", b"-Inf", b"Infinity", b"-Infinity", b"NaN", b"-NaN"])
def test_numbers_that_only_arrow_reads_lose_nothing(number: bytes) -> None:
    text = number.decode()
    assert left(b'{"a":1,"x":%s ,"y":"}"}' % number) == [f'{{"x":"{text}","y":"}}"}}']
    assert left(b'{"x":[{"k":"\\"]"}, %s],"o":{"y":2}}' % number) == [
        '{"x":"[{\\"k\\":\\"\\\\\\"]\\"}, ' + text + ']","o":{"y":2}}'
    ]
    assert left(b'{"f":%s,"x":"\xc3\xbc"}' % number, b'{"g":[%s],"x":["\xc3\xbc",Inf]}' % number) == [
        '{"x":"ü"}',
        '{"x":"[\\"ü\\",Inf]"}',
    ]


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize("around", ["[]", '{"":1}'])
def test_a_value_of_more_than_500_levels_is_kept_as_a_string(around: str) -> None:
    def nested(levels: int) -> str:
        return (around[:-2] or around[:1]) * levels + around[-2:-1].strip("[") + around[-1] * levels

    for levels in (100, 500):
        assert left(b'{"x":%s,"y":1}' % nested(levels).encode()) == [f'{{"x":{nested(levels)},"y":1}}']
    for levels in (501, 900, 100_000):
        text = json.dumps(nested(levels))
        assert left(b'{"x":%s,"y":1}' % nested(levels).encode()) == [f'{{"x":{text},"y":1}}']
    assert left(b'{"x":"%s"}' % (b"[" * 1000)) == ['{"x":"' + "[" * 1000 + '"}']


@pytest.mark.spec("SP-76", "SP-87")
@pytest.mark.parametrize("new", ["-NaN", "Inf", "1" * 5_000, "[" * 3_000 + "]" * 3_000])
def test_a_value_is_good_beside_any_other(new: str) -> None:
    value, known = b'{"a":1,"x":%s}' % new.encode(), b'{"f":-NaN}'
    alone = FORM.decode(pa.array([value, known]))
    beside = FORM.decode(pa.array([value, known, b"nonsense"]))
    assert (alone.bad, list(beside.bad)) == ({}, [2])
    items = JsonFormat.of("valueSchema", "ARRAY<STRUCT<a: BIGINT, f: DOUBLE>>")
    found = items.decode(pa.array([b"[%s]" % value, b"[%s]" % known, b"nonsense"]), new_fields=True)
    assert (list(found.bad), list(found.new)) == ([2], [0])


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize(
    "value",
    [b'{"l":[{"y":1}', b'{"l":[{"y":1},]}', b'{"l":[{"y":1}}', b'{"l":[,]}', b'[{"y":1}]',
     b'{"x":1', b'{"x":1,}', b'{"x" 1}', b'{x:1}', b'{"x":1}}', b'{"x":1},"y":2', b'{"x":1 "y":2}', b'{"x":}',
     b'{"o":{"y":1}', b'{"o":{"y":1,}}', b'{,"x":1}', b'{"x":01}', b'{"x', b"{", b'{"x":"\n"}'],
)  # fmt: skip
def test_nothing_is_kept_of_what_is_no_json(value: bytes) -> None:
    nothing_left(value)


DOCUMENTS = st.dictionaries(
    st.sampled_from(["a", "b", "o", "l"]),
    st.integers(0, 9)
    | st.dictionaries(st.sampled_from(["x", "y"]), st.integers(0, 9))
    | st.lists(st.none() | st.dictionaries(st.sampled_from(["m", "n"]), st.integers(0, 9)), max_size=2),
)


@pytest.mark.spec("SP-87")
@given(st.lists(DOCUMENTS, max_size=5))
def test_a_value_is_rescued_alike_whatever_the_other_values(documents: list[dict[str, Any]]) -> None:
    values = [json.dumps(document).encode() for document in documents]
    found = FORM.decode(pa.array(values, pa.binary()), new_fields=True)
    alone = [FORM.decode(pa.array([value]), new_fields=True) for value in values]
    assert list(found.bad) == [row for row, each in enumerate(alone) if each.bad]
    assert found.new == {row: each.new[0] for row, each in enumerate(alone) if each.new}


def parsed(monkeypatch: pytest.MonkeyPatch, *values: bytes) -> list[str]:
    """How the parser was called for a batch."""
    calls: list[str] = []

    def parse(form: JsonFormat, texts: pa.Array, unexpected: str = "ignore") -> pa.Array:
        calls.append(unexpected)
        return itself(form, texts, unexpected)

    itself = JsonFormat._parse
    monkeypatch.setattr(JsonFormat, "_parse", parse)
    FORM.decode(pa.array(values, pa.binary()), new_fields=True)
    monkeypatch.setattr(JsonFormat, "_parse", itself)
    return calls


@pytest.mark.spec("SP-87")
def test_a_batch_without_new_fields_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a bad value the good ones are parsed once more."""
    assert parsed(monkeypatch, b'{"a": 1}', b'{"o": {"x": 1}}') == ["error"]
    assert parsed(monkeypatch, b'{"a": 1}', b'{"new": 1}') == ["error", "ignore"]
    looked: list[int] = []

    def look(values: pa.Array, kind: pa.DataType) -> dict[int, str]:
        looked.append(len(values))
        return new_fields_of(values, kind)

    monkeypatch.setattr(json_format, "new_fields_of", look)
    parsed(monkeypatch, b'{"a": 1}', b"nonsense")
    assert looked == []
    parsed(monkeypatch, b'{"a": 1}', b"nonsense", b'{"new": 1}')
    assert looked == [3]
    numbers = JsonFormat.of("valueSchema", "ARRAY<BIGINT>")
    found = numbers.decode(pa.array([b"[1]", b"nonsense"]), new_fields=True)
    assert (list(found.bad), looked) == ([1], [3])

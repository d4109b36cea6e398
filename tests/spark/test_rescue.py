"""Fields of JSON that the schema does not name are kept as they came."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.spark.decoding.json_format import JsonFormat

FORM = JsonFormat.of(
    "valueSchema",
    "a BIGINT, o STRUCT<x: BIGINT, p: STRUCT<q: STRING>>, l ARRAY<STRUCT<m: BIGINT>>, "
    "d ARRAY<ARRAY<STRUCT<m: BIGINT>>>",
)


def left(*values: bytes | None) -> list[str | None]:
    found = FORM.decode(pa.array(values, pa.binary()), new_fields=True).new
    return [found.get(row) for row in range(len(values))]


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
    assert left(b'{"new": 1}', b"nonsense", b"\xff", b"[1]", b'{"a": "no number"}', None) == [
        '{"new":1}',
        *[None] * 5,
    ]


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
    """Numbers keep all digits; half a pair, which is no text, stays as it is written."""
    most = b"1" * 5_000
    assert left(b'{"n":12345678901234567.89,"m":-0.10E+2}') == ['{"n":12345678901234567.89,"m":-0.10E+2}']
    assert left(b'{"n":1e999}', b'{"n":%s}' % most) == ['{"n":1e999}', '{"n":' + most.decode() + "}"]
    assert left(b'{"x":"\\ud800","\\ud800":1}') == ['{"x":"\\ud800","\\ud800":1}']
    deep = "[" * 600 + "]" * 600
    assert left(b'{"x":%s}' % deep.encode()) == ['{"x":' + deep + "}"]


@pytest.mark.spec("SP-87")
def test_what_others_do_not_take_for_json_is_kept_as_a_string() -> None:
    assert left(b'{"x":NaN,"y":[-Infinity, 1],"z":{"a":1,"a":2},"w":1}') == [
        '{"x":"NaN","y":"[-Infinity, 1]","z":"{\\"a\\":1,\\"a\\":2}","w":1}'
    ]
    assert left(b'{"x":1,"x":2}') == ['{"x":2}']  # as Python reads a name that stands twice


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize(
    "value",
    [b'{"l":[{"y":1}', b'{"l":[{"y":1},]}', b'{"l":[{"y":1}}', b'{"l":[,]}', b'[{"y":1}]',
     b'{"x":1', b'{"x":1,}', b'{"x" 1}', b'{x:1}', b'{"x":1}}', b'{"x":1},"y":2', b'{"x":1 "y":2}', b'{"x":}',
     b'{"o":{"y":1}', b'{"o":{"y":1,}}', b'{,"x":1}', b'{"x":01}', b'{"x', b"{", b'{"x":"\n"}'],
)  # fmt: skip
def test_nothing_is_kept_of_what_is_no_json(value: bytes) -> None:
    assert left(value) == [None]


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
    assert left(*values) == [left(value)[0] for value in values]


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
    assert parsed(monkeypatch, b'{"a": 1}', b'{"o": {"x": 1}}') == ["error"]
    assert parsed(monkeypatch, b'{"a": 1}', b'{"new": 1}') == ["error", "ignore"]

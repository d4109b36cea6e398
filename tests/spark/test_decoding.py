"""Text and JSON as typed columns, and what becomes of bad records. Python's own json says what documents hold."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.errors import ConfigError, DecodeError
from kclient.spark.arrow_batches import check_columns
from kclient.spark.decoding import decoder_of, json_format
from kclient.spark.decoding.formats import ConversionError
from kclient.spark.decoding.json_format import JsonFormat, fault_of
from kclient.spark.options import SourceOptions
from tests.spark.decoder_support import decoder, raw, values_of

FLIGHT = "carrier STRING, flight INT, delay DOUBLE, tags ARRAY<STRING>"
documents = st.fixed_dictionaries(
    {},
    optional={
        "carrier": st.none() | st.text(),
        "flight": st.none() | st.integers(-(2**31), 2**31 - 1),
        "delay": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "tags": st.none() | st.lists(st.none() | st.text()),
        "unheard of": st.integers() | st.dictionaries(st.text(), st.booleans()),
    },
)


def test_nothing_is_decoded_unless_it_is_asked_for() -> None:
    options = SourceOptions.parse({"kafka.bootstrap.servers": "localhost:9092", "subscribe": "flights"})
    assert decoder_of(options) is None


@pytest.mark.spec("SP-75")
@settings(deadline=None)
@given(written=st.lists(documents, max_size=20), indent=st.none() | st.integers(0, 2))
def test_documents_come_as_python_reads_them(written: list[dict[str, object]], indent: int | None) -> None:
    encoded = [
        json.dumps(document, indent=indent, ensure_ascii=False).encode("utf-8", "replace")
        for document in written
    ]
    expected = [
        {name: json.loads(text).get(name) for name in ("carrier", "flight", "delay", "tags")}
        for text in encoded
    ]
    assert values_of(decoder(valueFormat="json", valueSchema=FLIGHT), encoded) == expected


@pytest.mark.spec("SP-75")
def test_every_type_of_the_schema() -> None:
    schema = (
        "b BOOLEAN, i8 TINYINT, i16 SMALLINT, i64 BIGINT, f FLOAT, s STRING, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, "
        "m DECIMAL(10,2), r STRUCT<`a b`: ARRAY<STRUCT<x: DATE>>>"
    )
    document = (
        b'{"b":true,"i8":-128,"i16":32767,"i64":9223372036854775807,"f":0.5,"s":"\\u00e9","d":"2013-01-31",'
        b'"t":"2013-01-31T10:00:00.25+02:00","n":"2013-01-31T10:00:00","m":1.25,"r":{"a b":[{"x":"1969-12-31"}]}}'
    )
    assert values_of(decoder(valueFormat="json", valueSchema=schema), [document]) == [
        {
            "b": True,
            "i8": -128,
            "i16": 32767,
            "i64": 9223372036854775807,
            "f": 0.5,
            "s": "é",
            "d": date(2013, 1, 31),
            "t": datetime(2013, 1, 31, 8, 0, 0, 250000, UTC),
            "n": datetime(2013, 1, 31, 10),
            "m": Decimal("1.25"),
            "r": {"a b": [{"x": date(1969, 12, 31)}]},
        }
    ]


BAD = [
    b'{"flight":"12"}',
    b'{"flight":1.0}',
    b'{"flight":2147483648}',
    b'{"carrier":7}',
    b'{"delay":true}',
    b'{"tags":"a"}',
    b"[]",
    b"7",
    b"",
    b"  ",
    b"{} {}",
    b'{"flight":1',
    b'{"carrier":"a\nb"}',
    b'{"carrier":"\\ud800"}',
    b'{"carrier":"\xff"}',
    b'{"flight":1,"flight":2}',
    b'{}}\n{"v":{}',
    b'{"flight":1},"x":2',
    b'{"flight":1},"x":{}',
    b'{"flight":1},',
    b'{"flight":1}{"flight":1}',
    b'{"flight":1}\0}',
    b'{"r":{}',
    b'{"r":',
    b"}",
    b"[" * 100_000,
]


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize("bad", BAD)
def test_a_bad_document_is_found_between_good_ones(bad: bytes) -> None:
    made = decoder(valueFormat="json", valueSchema=FLIGHT, badRecords="column")
    good = b'{"carrier":"UA"}'
    rows = made.decode(raw([good, bad, None, good, good])).to_pylist()
    assert [row["value"] is None for row in rows] == [False, True, True, False, False]
    assert [row["_raw"] for row in rows] == [None, bad, None, None, None]
    assert [row["_error"] is None for row in rows] == [True, False, True, True, True]
    assert rows[1]["_error"].startswith("value: json: ")


@pytest.mark.spec("SP-76")
@settings(deadline=None)
@given(st.lists(st.sampled_from([*BAD[:-1], b'{"flight":1}', b"null"]), max_size=30))
def test_a_value_means_the_same_whatever_the_other_values(values: list[bytes]) -> None:
    made = decoder(valueFormat="json", valueSchema=FLIGHT, badRecords="column")
    together = made.decode(raw(values), ["value", "_error"]).to_pylist()
    assert together == [made.decode(raw([value]), ["value", "_error"]).to_pylist()[0] for value in values]


@pytest.mark.spec("SP-75", "SP-76")
@pytest.mark.parametrize(
    ("schema", "good", "value", "bad"),
    [
        ("value BIGINT", b'{"value":7}', {"value": 7}, b'{"value":7},"v":7'),
        ("array<bigint>", b" [1, 2]\n", [1, 2], b'[1],"x":2'),
        ("array<bigint>", b"[1]", [1], b'[1],"x":[2]'),
        ("array<struct<a: int>>", b'[{"a":1,"b":2}]', [{"a": 1}], b'[{"a":1}],"x":[]'),
        ("bigint", b"7", 7, b'7,"x":8'),
        ("string", b'"7"', "7", b'"7","x":"8"'),
    ],
)
def test_a_value_is_one_document_whatever_its_type(schema: str, good: bytes, value: Any, bad: bytes) -> None:
    made = decoder(valueFormat="json", valueSchema=schema, badRecords="null")
    for values in ([good, bad, b" null ", good], [bad], [None, good, bad], [b"null"]):
        expected = [value if given == good else None for given in values]
        assert values_of(made, values) == expected


@pytest.mark.spec("SP-76")
def test_fail_names_the_record_and_shows_nothing_of_it() -> None:
    made = decoder(valueFormat="json", valueSchema=FLIGHT)
    with pytest.raises(DecodeError) as caught:
        made.decode(raw([b"{}", b'{"flight":"hunter2"}', b"hunter2"]))
    error = caught.value
    assert (error.topic, error.partition, error.offset, error.part) == ("flights", 3, 101, "value")
    assert "flights-3 at offset 101" in str(error)
    assert "hunter2" not in str(error)


@pytest.mark.spec("SP-76")
def test_null_leaves_the_rest_as_it_is() -> None:
    made = decoder(valueFormat="string", badRecords="null")
    assert made.default_columns(include_headers=False)[-1] == "timestampType"
    assert values_of(made, ["é".encode(), b"\xff", None, b""]) == ["é", None, None, ""]


@pytest.mark.spec("SP-76")
def test_key_and_value_may_both_be_bad() -> None:
    made = decoder(keyFormat="string", valueFormat="json", valueSchema="BIGINT", badRecords="column")
    batch = made.decode(raw([b"1", b"x", b"3"], [b"\xff", b"\xfe", b"k"]))
    rows = batch.select(["key", "value", "_error", "_raw"]).to_pylist()
    assert rows[0] == {"key": None, "value": 1, "_error": "key: string: it is not UTF-8", "_raw": b"\xff"}
    assert rows[1]["_error"].startswith("key: string: it is not UTF-8; value: json: ")
    assert rows[1]["_raw"] == b"x"
    assert rows[2] == {"key": "k", "value": 3, "_error": None, "_raw": None}


@pytest.mark.spec("SP-30", "SP-76")
def test_only_what_is_needed_is_read() -> None:
    failing = decoder(valueFormat="string")
    assert failing.raw_columns(["offset"]) == ("offset",)
    assert failing.raw_columns(["value"]) == ("value", "topic", "partition", "offset")
    telling = decoder(valueFormat="string", badRecords="column")
    assert telling.raw_columns(["value", "key"]) == ("value", "key")
    assert telling.raw_columns(["_error"]) == ("value",)
    assert telling.decode(raw([b"\xff"]).select(["value"]), ["_error"]).to_pylist() == [
        {"_error": "value: string: it is not UTF-8"}
    ]


@pytest.mark.spec("SP-30")
def test_a_schema_of_the_users_own_names_decoded_columns() -> None:
    made = decoder(valueFormat="json", valueSchema="a INT, b ARRAY<DATE>", badRecords="column")
    kind = "struct<a:int,b:array<date>>"
    assert made.types["value"] == kind
    assert check_columns([("_raw", "binary"), ("value", kind)], made.types) == ("_raw", "value")
    with pytest.raises(ConfigError, match="column value is struct"):
        check_columns([("value", "binary")], made.types)


@pytest.mark.parametrize("comment", ["'x, y INT'", '"x\'s"', "'it''s'", r"'it\'s'", "''", "'a\nb'"])
def test_a_comment_is_left_out(comment: str) -> None:
    made = decoder(valueFormat="json", valueSchema=f"a INT COMMENT {comment}, `b c` STRING COMMENT {comment}")
    assert made.types["value"] == "struct<a:int,b c:string>"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("a INT NOT NULL", "NOT NULL"),
        ("a INT, a STRING", "every name once"),
        ("a INTT", "at character 3 there is 'INTT', expected a type"),
        ("a INT,", "expected the name of a field"),
        ("struct<a:int", "at character 13 there is the end, expected '>'"),
        ("decimal(39,0)", "at most 38 digits"),
        ("a INT b STRING", "a comma or the end"),
        ("` INT", "at character 1 there is '`', expected the name of a field"),
        ("`` INT", "at character 1 there is '`', expected the name of a field"),
        ("a INT COMMENT", "at character 14 there is the end, expected the text of the comment in quotes"),
        ("a INT COMMENT x", "at character 15 there is 'x', expected the text of the comment"),
        ("a INT COMMENT , b INT", "at character 15 there is ',', expected the text of the comment"),
        ("a INT COMMENT 'x, b INT", "expected the text of the comment"),
        ("array<" * 60 + "int", "50 types"),
        ("a STRUCT<m: MAP<STRING,INT>>", "field a.m is a map"),
        ("a ARRAY<BINARY>", r"field a\[\] is binary"),
    ],
)
def test_a_schema_that_cannot_be_says_where(schema: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        decoder(valueFormat="json", valueSchema=schema)


@pytest.mark.spec("SP-75", "SP-76")
@pytest.mark.parametrize(
    ("kind", "most", "too_large"),
    [
        ("FLOAT", b"3.4028235e38", [b"1e39", b"-1e39", b"3.4028236e38", b"1" * 50]),
        ("DOUBLE", b"1.7976931348623157e308", [b"1" * 400, b"-" + b"9" * 309, b"1e309"]),
    ],
)
def test_no_number_becomes_an_infinity(kind: str, most: bytes, too_large: list[bytes]) -> None:
    """Alone, and beside infinities that are written as such."""
    form = JsonFormat.of("valueSchema", f"v {kind}, w STRUCT<l: ARRAY<{kind}>>")
    infinities = [
        b'{"v":%s,"w":{"l":[%s]}}' % pair for pair in ((b"-Inf", b"1"), (b"1", b"Infinity"), (most, most))
    ]
    for number in too_large:
        for text in (b'{"v":%s}', b'{"w":{"l":[1,%s]}}'):
            bad = text % number
            assert list(form.decode(pa.array([bad])).bad) == [0]
            found = form.decode(pa.array([*infinities, bad, None, b"nonsense"]), new_fields=True)
            assert list(found.bad) == [3, 5]
            assert found.array[0].as_py() == {"v": -math.inf, "w": {"l": [1]}}
            assert found.array[1].as_py() == {"v": 1, "w": {"l": [math.inf]}}
            assert math.isfinite(found.array[2].as_py()["v"])
    assert (
        form.decode(pa.array([b'{"v":%s}' % too_large[0]]))
        .bad[0]
        .reason.startswith("a value in it does not fit")
    )


FAULTS = [
    *BAD[:-1],
    b'{"delay":' + b"1" * 400 + b"}",
    b'{"delay":1.7976931348623157e308}',
    b'{"flight":1e2}',
    b'{"flight":-2147483649}',
    b'{"flight":NaN}',
    b'{"flight":-0,"delay":NaN}',
    b'{"delay":"NaN"}',
    b'{"delay":Inf}',
    b'{"delay":1e999}',
    b'{"flight":null,"tags":null}',
    b'{"tags":[null,"a"]}',
    b'{"tags":[1]}',
    b'{"tags":{}}',
    b'{"carrier":"a\tb"}',
    b'{"carrier":"\\u0000"}',
    b'{"x":"\\ud800"}',
    b'{"flight":01}',
    b'{"flight":1.}',
    b"\xef\xbb\xbf{}",
    b'{"flight":' + b"9" * 5_000 + b"}",
    b'{"flight":1}\x0b',
    "{}\u00a0".encode(),
]
TIMES = [
    "2013-01-31",
    "2013-02-30",
    "0000-01-01",
    "-2013-01-01",
    "2013-1-1",
    "",
    "20130131",
    "2013-01-31T10:00:00Z",
]


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize("document", FAULTS)
def test_a_fault_is_found_only_where_the_parser_finds_one(document: bytes) -> None:
    kind = JsonFormat.of("valueSchema", FLIGHT)
    if fault_of(document, kind.type) is not None:
        with pytest.raises(ConversionError):
            kind._parse(pa.array([document], pa.binary()))


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize(
    "kind", ["DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "DECIMAL(4,2)", "BOOLEAN", "STRING", "DOUBLE"]
)
@settings(deadline=None)
@given(
    st.one_of(
        st.sampled_from(TIMES),
        st.text(max_size=5),
        st.integers(),
        st.floats(),
        st.booleans(),
        st.none(),
        st.dates().map(str),
        st.datetimes().map(str),
        st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9]{2}:[0-9]{2})?", fullmatch=True),
    )
)
def test_nor_is_one_found_in_any_value_that_the_parser_takes(kind: str, value: Any) -> None:
    document = json.dumps({"v": value}).encode()
    form = JsonFormat.of("valueSchema", f"v {kind}")
    if fault_of(document, form.type) is not None:
        with pytest.raises(ConversionError):
            form._parse(pa.array([document], pa.binary()))


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize(
    "bad",
    [
        b'{"flight":"12"}',
        b'{"flight":1',
        b"hello",
        b'{"carrier":7}',
        b'{"tags":[true]}',
        b'{"delay":%s}' % (b"1" * 400),
    ],
)
@pytest.mark.parametrize("every", [1, 2, 7])
def test_bad_documents_cost_little_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch, bad: bytes, every: int
) -> None:
    """Counted in calls of Arrow's parser, which were a dozen and more for each bad document."""
    calls = 0
    read = json_format._read

    def counted(*arguments: Any) -> pa.Table:
        nonlocal calls
        calls += 1
        return read(*arguments)

    monkeypatch.setattr(json_format, "_read", counted)
    made = decoder(valueFormat="json", valueSchema=FLIGHT, badRecords="column")
    values: list[bytes | None] = [bad if row % every == 0 else b'{"flight":1}' for row in range(10_000)]
    errors = made.decode(raw(values), ["_error"]).column("_error")
    assert errors.null_count == 10_000 - len(range(0, 10_000, every))
    assert calls < 250

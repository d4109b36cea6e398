"""Schemas that cannot be: each is refused with the file, the field and the reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codegen.__main__ import main
from codegen.error_codes import parse_errors
from codegen.errors import SchemaError
from codegen.output import generate
from codegen.parse import parse_file
from codegen.versions import Versions, parse_versions

Schema = dict[str, Any]


def schema(**changes: Any) -> Schema:
    """A schema that is fine, with some of its keys changed."""
    fine: Schema = {
        "apiKey": 1,
        "type": "request",
        "name": "TestRequest",
        "validVersions": "0-3",
        "flexibleVersions": "2+",
        "fields": [{"name": "Id", "type": "int32", "versions": "0+"}],
    }
    return {**fine, **changes}


def with_field(**facts: Any) -> Schema:
    """A fine schema with one more field, Odd."""
    odd = {"name": "Odd", "type": "int32", "versions": "1+", **facts}
    return schema(fields=[*schema()["fields"], odd])


def inner(*fields: Schema) -> Schema:
    """A struct Box around fields, in versions 1 and later."""
    return {"name": "Box", "type": "[]BoxType", "versions": "1+", "fields": list(fields)}


NUMBER = {"name": "Number", "type": "int32", "versions": "0+"}

REFUSED: dict[str, tuple[Schema, str, str]] = {
    "unknown key of the message": (schema(colour="red"), "", "unknown key 'colour'"),
    "unknown key of a field": (with_field(nulable="0+"), "Odd", "unknown key 'nulable'"),
    "unknown key of a nested field": (
        schema(fields=[inner({**NUMBER, "x": 1})]),
        "Box.Number",
        "unknown key 'x'",
    ),
    "unknown key of a common struct": (
        schema(
            commonStructs=[{"name": "C", "versions": "0+", "fields": [NUMBER], "x": 1}],
            fields=[{"name": "A", "type": "C", "versions": "0+"}],
        ),
        "C",
        "unknown key 'x'",
    ),
    "another name than the file's": (schema(name="OtherRequest"), "", "file and message have the same name"),
    "no message type": (schema(type="question"), "", "type 'question' is none of"),
    "API key as text": (schema(apiKey="1"), "", "apiKey '1' is not a number"),
    "open valid versions": (schema(validVersions="0+"), "", "must name the last version"),
    "flexible versions that end": (
        schema(flexibleVersions="1-2"),
        "",
        "flexibleVersions '1-2' ends: write 3+ or none",
    ),
    "no versions": (schema(validVersions="none"), "", "must name the last version"),
    "valid versions missing": (
        {k: v for k, v in schema().items() if k != "validVersions"},
        "",
        "validVersions is missing",
    ),
    "backward range": (with_field(versions="3-1"), "Odd", "ends before it begins"),
    "range of words": (with_field(versions="one+"), "Odd", "'one+' is not a version range"),
    "range as a number": (with_field(versions=1), "Odd", "1 is not a version range"),
    "versions outside the message": (with_field(versions="4+"), "Odd", "versions '4+' has no version of 0-3"),
    "versions outside the struct": (
        schema(fields=[inner({**NUMBER, "versions": "0"})]),
        "Box.Number",
        "versions '0' has no version of 1-3",
    ),
    "null outside its versions": (
        with_field(type="string", nullableVersions="0"),
        "Odd",
        "nullableVersions '0' has no version of 1-3",
    ),
    "null number": (with_field(nullableVersions="1+"), "Odd", "int32 cannot be null"),
    "tag without versions": (with_field(tag=0), "Odd", "tag and taggedVersions belong together"),
    "tagged versions without tag": (
        with_field(taggedVersions="2+"),
        "Odd",
        "tag and taggedVersions belong together",
    ),
    "tag before flexible versions": (with_field(tag=0, taggedVersions="1+"), "Odd", "are not all flexible"),
    "tag outside its versions": (with_field(tag=0, taggedVersions="0"), "Odd", "has no version of 1-3"),
    "negative tag": (with_field(tag=-1, taggedVersions="2+"), "Odd", "tag -1 is not between 0 and"),
    "true as a tag": (with_field(tag=True, taggedVersions="2+"), "Odd", "tag True is not between 0 and"),
    "a tag twice": (
        schema(
            fields=[
                {"name": "A", "type": "int8", "versions": "2+", "tag": 1, "taggedVersions": "2+"},
                {"name": "B", "type": "int8", "versions": "2+", "tag": 1, "taggedVersions": "2+"},
            ]
        ),
        "",
        "tag 1 belongs to both A and B",
    ),
    "a tag twice in a struct": (
        schema(
            fields=[
                inner(
                    {"name": "A", "type": "int8", "versions": "2+", "tag": 0, "taggedVersions": "2+"},
                    {"name": "B", "type": "int8", "versions": "2+", "tag": 0, "taggedVersions": "2+"},
                )
            ]
        ),
        "Box",
        "tag 0 belongs to both A and B",
    ),
    "a field twice": (schema(fields=[NUMBER, {**NUMBER, "name": "number"}]), "", "are both number"),
    "a struct twice": (
        schema(fields=[inner(NUMBER), {**inner(NUMBER), "name": "Crate"}]),
        "Crate",
        "struct BoxType is defined twice",
    ),
    "a struct in itself": (
        schema(
            commonStructs=[
                {"name": "C", "versions": "0+", "fields": [{"name": "Own", "type": "[]C", "versions": "0+"}]}
            ],
            fields=[{"name": "A", "type": "C", "versions": "0+"}],
        ),
        "C",
        "contains itself",
    ),
    "a common struct that nobody uses": (
        schema(commonStructs=[{"name": "Idle", "versions": "0+", "fields": [NUMBER]}]),
        "",
        "no field is a Idle",
    ),
    "unknown type": (with_field(type="int33"), "Odd", "'int33' is neither a scalar nor a struct"),
    "no type": (with_field(type=""), "Odd", "'' is not a type"),
    "array of arrays": (with_field(type="[][]int32"), "Odd", "'[][]int32' is not a type"),
    "array of bytes": (with_field(type="[]bytes"), "Odd", "there are no arrays of bytes"),
    "array of records": (with_field(type="[]records"), "Odd", "there are no arrays of records"),
    "scalar with fields": (with_field(fields=[NUMBER]), "Odd", "int32 has no fields"),
    "fields that are no list": (schema(fields={}), "", "fields is not a list"),
    "a field that is no object": (schema(fields=["Id"]), "", "not a JSON object"),
    "a field without a name": (
        schema(fields=[{"type": "int8", "versions": "0+"}]),
        "?",
        "name None is not a name",
    ),
    "a name with a blank": (with_field(name="O dd"), "O dd", "'O dd' is not a name"),
    "a name that is taken": (
        with_field(name="Buffer"),
        "Buffer",
        "means something else in generated modules",
    ),
    "a name that every class has": (
        with_field(name="UnknownTags"),
        "UnknownTags",
        "means something else in generated modules",
    ),
    "flag as text": (with_field(ignorable="true"), "Odd", "ignorable is true or false, not 'true'"),
    "field-level flexible versions": (with_field(flexibleVersions="2+"), "Odd", "can only be none"),
    "description that is no text": (with_field(about=7), "Odd", "about is not text"),
    "default as a number": (with_field(default=3), "Odd", "default 3 is not a string"),
    "default beyond the type": (
        with_field(type="int8", default="128"),
        "Odd",
        "default '128' does not fit int8",
    ),
    "default below the type": (
        with_field(type="uint16", default="-1"),
        "Odd",
        "default '-1' does not fit uint16",
    ),
    "default with a point": (with_field(default="1.0"), "Odd", "default '1.0' does not fit int32"),
    "default that is no number": (
        with_field(type="float64", default="x"),
        "Odd",
        "default 'x' does not fit float64",
    ),
    "default that is no bool": (
        with_field(type="bool", default="yes"),
        "Odd",
        "default 'yes' does not fit bool",
    ),
    "null default": (
        with_field(type="string", default="null"),
        "Odd",
        "default is null, but the field never is",
    ),
    "default of an array": (
        with_field(type="[]int32", default="0"),
        "Odd",
        "does not fit an array or a struct",
    ),
    "default of bytes": (with_field(type="bytes", default="ab"), "Odd", "default 'ab' does not fit bytes"),
    "default of a uuid": (with_field(type="uuid", default="0"), "Odd", "default '0' does not fit uuid"),
}


@pytest.mark.parametrize(("broken", "field", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_schema_that_cannot_be_is_refused(tmp_path: Path, broken: Schema, field: str, reason: str) -> None:
    path = tmp_path / "TestRequest.json"
    path.write_text(json.dumps(broken), "utf-8")
    with pytest.raises(SchemaError) as refused:
        parse_file(path)
    assert (refused.value.file, refused.value.field) == ("TestRequest.json", field)
    assert reason in refused.value.reason
    assert str(refused.value).startswith("TestRequest.json: ")


@pytest.mark.parametrize("text", ["{", "[]", '{"name": "A", "name": "B"}'])
def test_a_file_that_is_no_object_of_json_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "TestRequest.json"
    path.write_text(text, "utf-8")
    with pytest.raises(SchemaError, match=r"TestRequest\.json: is not "):
        parse_file(path)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("code\tname\n", "the columns are"),
        ("{head}x\tNONE\tfalse\tfalse\tfalse\n", "line 2"),
        ("{head}0\tNONE\tfalse\tfalse\tno\n", "line 2"),
        ("{head}0\tNONE\tfalse\tfalse\tfalse\n0\tOTHER\tfalse\tfalse\tfalse\n", "twice"),
    ],
)
def test_a_broken_table_of_errors_is_refused(tmp_path: Path, lines: str, reason: str) -> None:
    head = "code\tname\tretriable\tinvalid_metadata\trefresh_retriable\n"
    path = tmp_path / "errors.tsv"
    path.write_text(lines.replace("{head}", head), "utf-8")
    with pytest.raises(SchemaError, match=reason):
        parse_errors(path)


def test_the_command_names_what_it_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "TestRequest.json").write_text(json.dumps(with_field(tag=0)), "utf-8")
    assert main(["--schemas", str(tmp_path), "--output", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err == "TestRequest.json: Odd: tag and taggedVersions belong together\n"
    assert not (tmp_path / "out").exists()


def test_an_api_has_one_request(tmp_path: Path) -> None:
    for name in ("FirstRequest", "SecondRequest"):
        (tmp_path / f"{name}.json").write_text(json.dumps(schema(name=name)), "utf-8")
    with pytest.raises(
        SchemaError, match=r"SecondRequest\.json: apiKey 1 belongs to the request FirstRequest too"
    ):
        generate(tmp_path)


@pytest.mark.parametrize(
    ("text", "versions"),
    [("0", Versions(0, 0)), ("3-5", Versions(3, 5)), ("2+", Versions(2, 32767)), ("none", Versions(0, -1))],
)
def test_version_ranges_are_closed_intervals(text: str, versions: Versions) -> None:
    assert parse_versions(text) == versions


def test_ranges_meet_in_an_interval_or_not_at_all() -> None:
    both: Callable[[str, str], str] = lambda a, b: str(parse_versions(a) & parse_versions(b))  # noqa: E731
    assert both("0-4", "2+") == "2-4"
    assert both("0-1", "2+") == "none"
    assert not parse_versions("none")

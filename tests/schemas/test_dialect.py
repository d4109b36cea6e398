"""Every schema file follows the dialect, and the dialect refuses what is not of it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from tests.schemas.support import DIALECT, Node, load, schema_files

VALIDATOR = jsonschema.Draft202012Validator(load(DIALECT))

SAMPLE: Node = {
    "apiKey": 99,
    "type": "request",
    "name": "SampleRequest",
    "listeners": ["broker"],
    "validVersions": "0-4",
    "removedInKafka4": "0",
    "latestVersionUnstable": True,
    "flexibleVersions": "2+",
    "about": "Exists to be broken in one place at a time.",
    "fields": [
        {"name": "Name", "type": "string", "versions": "0+", "nullableVersions": "1+", "mapKey": True},
        {"name": "Extra", "type": "int32", "versions": "2+", "taggedVersions": "2+", "tag": 0, "default": "-1"},
        {"name": "Parts", "type": "[]Part", "versions": "3-4", "fields": [
            {"name": "Index", "type": "int8", "versions": "3+"},
        ]},
        {"name": "Shared", "type": "Common", "versions": "0", "ignorable": True},
    ],
    "commonStructs": [
        {"name": "Common", "versions": "0+", "fields": [{"name": "Id", "type": "uuid", "versions": "0+"}]}
    ],
}  # fmt: skip


def test_the_dialect_is_itself_a_valid_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(load(DIALECT))


@pytest.mark.parametrize("path", schema_files(), ids=lambda path: path.stem)
def test_every_schema_file_follows_the_dialect(path: Path) -> None:
    problems = [f"{list(e.absolute_path)}: {e.message}" for e in VALIDATOR.iter_errors(load(path))]
    assert problems == []


def test_the_sample_is_valid_until_it_is_broken() -> None:
    VALIDATOR.validate(SAMPLE)


def field(index: int, **change: object) -> Callable[[Node], None]:
    return lambda sample: sample["fields"][index].update(change)


def top(**change: object) -> Callable[[Node], None]:
    return lambda sample: sample.update(change)


def without(key: str, of_field: int | None = None) -> Callable[[Node], None]:
    return lambda sample: (sample if of_field is None else sample["fields"][of_field]).pop(key)


BROKEN: dict[str, Callable[[Node], None]] = {
    "unknown key of the message": top(deprecated="yes"),
    "unknown key of a field": field(0, nulable="1+"),
    "unknown key of a common struct": lambda sample: sample["commonStructs"][0].update(type="struct"),
    "unknown kind of message": top(type="question"),
    "no name": without("name"),
    "no fields": without("fields"),
    "no valid versions": without("validVersions"),
    "no flexible versions": without("flexibleVersions"),
    "a request without an api key": without("apiKey"),
    "a request that is not called one": top(name="SampleResponse"),
    "a response with listeners": top(type="response", name="SampleResponse"),
    "data with an api key": top(type="data", name="Sample"),
    "versions that do not begin at 0": top(validVersions="3-4"),
    "open valid versions": top(validVersions="0+"),
    "versions backwards in form": field(0, versions="+2"),
    "versions with blanks": field(0, versions="2 - 4"),
    "versions as a number": field(0, versions=2),
    "a field without versions": without("versions", 0),
    "a field without type": without("type", 0),
    "an unknown primitive": field(1, type="int24"),
    "an array of arrays": field(2, type="[][]int8"),
    "fields inside a primitive": field(1, fields=[{"name": "N", "type": "int8", "versions": "0+"}]),
    "a struct with an empty list of fields": field(2, fields=[]),
    "a number that may be null": field(1, nullableVersions="2+"),
    "a tag without tagged versions": without("taggedVersions", 1),
    "tagged versions without a tag": without("tag", 1),
    "a negative tag": field(1, tag=-1),
    "a default that is not text": field(1, default=-1),
    "a flag that is not a flag": field(3, ignorable="true"),
    "an unknown entity": field(0, entityType="rackName"),
    "a field name with a dash": field(0, name="first-name"),
    "an about without its full stop": top(about="Exists to be broken in one place"),
    "an about of two lines": top(about="Exists to be broken\nin one place at a time."),
    "an about that says nothing": top(about="The name."),
    "an about that would end the docstring": top(about='It is called """ by some people, sadly.'),
}


@pytest.mark.parametrize("break_it", BROKEN.values(), ids=BROKEN.keys())
def test_what_is_not_of_the_dialect_is_refused(break_it: Callable[[Node], None]) -> None:
    sample = copy.deepcopy(SAMPLE)
    break_it(sample)
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(sample)

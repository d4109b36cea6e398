"""The descriptions in the schemas, which become the generated docstrings."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.schemas.peer import peer_messages
from tests.schemas.support import Node, all_messages, structs

MESSAGES = all_messages()


def abouts(fields: list[Node]) -> list[str]:
    return [field["about"] for field in fields if "about" in field]


def all_abouts(message: Node) -> set[str]:
    return {about.strip().lower() for _, fields in structs(message) for about in abouts(fields)}


THEIRS = set().union(*(all_abouts(message) for message in peer_messages().values()))


@pytest.mark.parametrize("name", MESSAGES)
def test_every_message_says_what_it_is(name: str) -> None:
    assert MESSAGES[name].get("about")


@pytest.mark.parametrize("name", MESSAGES)
def test_every_field_says_what_it_means(name: str) -> None:
    silent = [
        f"{path}.{field['name']}"
        for path, fields in structs(MESSAGES[name])
        for field in fields
        if "about" not in field
    ]
    assert silent == []


@pytest.mark.parametrize("name", MESSAGES)
def test_no_two_fields_of_a_struct_are_described_alike(name: str) -> None:
    for path, fields in structs(MESSAGES[name]):
        repeated = [about for about, count in Counter(abouts(fields)).items() if count > 1]
        assert repeated == [], path


@pytest.mark.parametrize("name", MESSAGES)
def test_descriptions_are_our_own_words(name: str) -> None:
    assert all_abouts(MESSAGES[name]) & THEIRS == set()

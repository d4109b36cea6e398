"""Offsets as JSON: one canonical text, and nothing but ConfigError's ValueError for hostile text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.spark.offsets import EARLIEST, dump_offsets, parse_offsets, parse_partitions
from kclient.types import TopicPartition

topics = st.from_regex(r"[a-zA-Z0-9_-]{1,20}", fullmatch=True)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
offset_maps = st.dictionaries(
    st.builds(TopicPartition, topics, st.integers(0, 2**31 - 1)),
    st.integers(0, 2**63 - 1),
    min_size=1,
    max_size=20,
)


@pytest.mark.spec("SP-46", "ST-02")
def test_partitions_are_ordered_by_number_and_topics_by_name() -> None:
    offsets = {TopicPartition("b", 10): 1, TopicPartition("b", 9): 2, TopicPartition("a", 0): 3}
    assert dump_offsets(offsets) == '{"a": {"0": 3}, "b": {"9": 2, "10": 1}}'


@pytest.mark.spec("SP-46", "ST-02")
@given(offset_maps, st.randoms())
def test_the_text_does_not_depend_on_the_order_of_what_was_read(
    offsets: dict[TopicPartition, int], random: object
) -> None:
    shuffled = list(offsets.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert dump_offsets(dict(shuffled)) == dump_offsets(offsets)
    assert parse_offsets(dump_offsets(offsets)) == offsets
    assert list(parse_offsets(dump_offsets(offsets))) == sorted(offsets)


@pytest.mark.spec("SP-48")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not JSON"),
        ("[]", "must be a JSON object"),
        ("{}", "must be a JSON object"),
        ('{"t": {}}', "must give topic 't'"),
        ('{"t": [0]}', "must give topic 't'"),
        ('{"t": {"0": 1.5}}', "an offset"),
        ('{"t": {"0": "1"}}', "an offset"),
        ('{"t": {"0": true}}', "an offset"),
        ('{"t": {"0": null}}', "an offset"),
        ('{"t": {"0": -1}}', "an offset"),
        ('{"t": {"0": 9223372036854775808}}', "an offset"),
        ('{"t": {"-1": 0}}', "names no partition"),
        ('{"t": {"01": 0}}', "names no partition"),
        ('{"t": {"٣": 0}}', "names no partition"),
        ('{"t": {"2147483648": 0}}', "names no partition"),
        ('{"t": {"0": 1, "0": 2}}', "twice"),
        ('{"t": {"0": 1}, "t": {"1": 2}}', "twice"),
        ('{"a b": {"0": 1}}', "not a topic name"),
        ('{"..": {"0": 1}}', "not a topic name"),
        ("[" * 100_000, "is not JSON"),
        ('{"t": {"0": ' + "9" * 5000 + "}}", "offset|JSON|digits"),
        (" " * 5_000_000, "characters"),
    ],
)
def test_what_is_not_offsets_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_offsets(text)


@pytest.mark.spec("SP-48", "ST-02")
@given(any_json)
def test_any_json_parses_or_raises_value_error(value: object) -> None:
    for read in (parse_offsets, parse_partitions):
        try:
            read(json.dumps(value))
        except ValueError:
            continue


def test_words_are_negative_numbers_where_they_mean_something() -> None:
    assert parse_offsets('{"t": {"0": -2}}', [EARLIEST]) == {TopicPartition("t", 0): EARLIEST}
    with pytest.raises(ValueError, match="or -2"):
        parse_offsets('{"t": {"0": -1}}', [EARLIEST])


@pytest.mark.parametrize(
    "text", ['{"t": []}', '{"t": [0, 0]}', '{"t": [true]}', '{"t": [-1]}', '{"t": {"0": 1}}']
)
def test_a_list_of_partitions_names_each_once(text: str) -> None:
    with pytest.raises(ValueError, match="partition"):
        parse_partitions(text)
    assert parse_partitions('{"b": [10, 9], "a": [0]}') == (("a", 0), ("b", 9), ("b", 10))

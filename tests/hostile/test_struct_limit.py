"""The walk that counts a response's structs takes messages of any length, and ends at the first struct too many."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from kclient.errors import ProtocolDecodeError
from kclient.generated.metadata_response import MetadataResponse, MetadataResponseTopic
from kclient.protocol.message import Message
from kclient.protocol.registry import message_class, write_message
from kclient.protocol.struct_limit import compiled, require_few_structs, walk
from tests.fuzz.strategies import messages, pairs

RESPONSES = [(name, version) for name, version in pairs() if name.endswith("Response")]


@st.composite
def answers(draw: st.DrawFn) -> tuple[int, Message]:
    name, version = draw(st.sampled_from(RESPONSES))
    return version, draw(messages(name, version))


@seed(13)
@settings(
    max_examples=300,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(answers())
def test_the_walk_ends_where_the_message_ends(response: tuple[int, Message]) -> None:
    version, message = response
    data = b"".join(write_message(message, version))
    kind = message_class(message.NAME)
    assert walk(compiled(kind, version, kind.is_flexible(version)), data, 0, 1_000) == len(data)


@pytest.mark.parametrize("version", [0, 1, 8, 9, 12])
def test_one_struct_too_many_is_refused(version: int) -> None:
    topics = [MetadataResponseTopic(name="t", topic_id=bytes(16)) for _ in range(10)]
    data = b"".join(write_message(MetadataResponse(topics=topics), version))
    require_few_structs(MetadataResponse, version, data, 0, 10)
    with pytest.raises(ProtocolDecodeError, match="more than 9 entries"):
        require_few_structs(MetadataResponse, version, data, 0, 9)


def test_bytes_that_end_early_are_left_to_the_reader() -> None:
    data = b"".join(write_message(MetadataResponse(topics=[MetadataResponseTopic(name="t")]), 12))
    for size in range(len(data)):
        require_few_structs(MetadataResponse, 12, data[:size], 0, 10)

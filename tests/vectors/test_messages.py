"""Every message at every version: Java's bytes are read as Java reads them, and written as Java writes them."""

from __future__ import annotations

import pytest

from kclient import protocol
from kclient.protocol.registry import MESSAGES, message_class
from tests.vectors.cases import Case, by_version, records, tags, vectors

CASES = by_version(vectors("messages"))


@pytest.mark.spec("C.1", "D-70", "D-72", "D-84")
@pytest.mark.parametrize("cases", CASES.values(), ids=CASES)
def test_java_bytes_are_read_and_written_back(cases: list[Case]) -> None:
    for case in cases:
        name, version, data = case["message"], case["version"], bytes.fromhex(case["hex"])
        message = protocol.decode(name, version, data)
        assert protocol.to_json(message, version) == case["fields"], case["case"]
        assert protocol.records_of(message) == records(case), case["case"]
        assert protocol.unknown_tags_of(message) == tags(case.get("unknown_tags", [])), case["case"]
        assert protocol.encode(message, version) == data, case["case"]


@pytest.mark.spec("C.1", "D-84")
@pytest.mark.parametrize("cases", CASES.values(), ids=CASES)
def test_fields_as_java_prints_them_become_java_bytes(cases: list[Case]) -> None:
    for case in cases:
        message = protocol.from_json(
            case["message"],
            case["version"],
            case["fields"],
            records=records(case),
            unknown_tags=tags(case.get("unknown_tags", [])),
        )
        assert protocol.encode(message, case["version"]) == bytes.fromhex(case["hex"]), case["case"]


@pytest.mark.parametrize("cases", CASES.values(), ids=CASES)
def test_a_frame_in_a_view_reads_like_bytes(cases: list[Case]) -> None:
    for case in cases:
        data = bytes.fromhex(case["hex"])
        of_bytes = protocol.decode(case["message"], case["version"], data)
        for buffer in (memoryview(data), bytearray(data), memoryview(bytearray(data))):
            assert protocol.decode(case["message"], case["version"], buffer) == of_bytes, case["case"]


@pytest.mark.spec("C.1")
@pytest.mark.parametrize("cases", CASES.values(), ids=CASES)
def test_a_new_object_is_java_default_object(cases: list[Case]) -> None:
    for case in cases:
        if case["case"] == "default":
            message = message_class(case["message"])()
            assert protocol.encode(message, case["version"]) == bytes.fromhex(case["hex"])
            assert protocol.to_json(message, case["version"]) == case["fields"]


@pytest.mark.spec("C.1")
def test_java_wrote_every_version_that_the_schemas_have() -> None:
    ours = {f"{name}-{v}" for name, entry in MESSAGES.items() for v in range(entry.lowest, entry.highest + 1)}
    assert ours == set(CASES)
    assert sum(map(len, CASES.values())) == 6565

"""The generator against a small invented schema that uses everything the dialect has.

`golden/output` is compared byte for byte: read it to see what the generator makes of `golden/schemas`. When a change
of the templates is meant, write it again with

    python -m codegen --schemas tests/codegen/golden/schemas --output tests/codegen/golden/output
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from codegen.output import generate

GOLDEN = Path(__file__).parent / "golden"
ROOT = Path(__file__).parents[2]


def read(version: int, data: bytes) -> Any:
    module = golden_module()
    message, end = module.CODECS[version][0](data, 0, len(data))
    assert end == len(data)
    return message


def write(message: Any, version: int) -> bytes:
    parts: list[bytes] = []
    sys.modules[type(message).__module__].CODECS[version][1](message, parts.append)
    return b"".join(parts)


def golden_module() -> ModuleType:
    """The module that the golden output is."""
    name = "golden_parcel_request"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, GOLDEN / "output" / "parcel_request.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def test_the_output_is_the_golden_output_byte_for_byte() -> None:
    files = generate(GOLDEN / "schemas")
    assert sorted(files) == sorted(path.name for path in (GOLDEN / "output").glob("*.py"))
    for name, text in files.items():
        assert text == (GOLDEN / "output" / name).read_text("utf-8"), name


def test_the_output_does_not_depend_on_the_run() -> None:
    assert generate(GOLDEN / "schemas") == generate(GOLDEN / "schemas")


@pytest.mark.parametrize("arguments", [["format", "--check"], ["check", "--no-cache"]])
def test_the_output_is_formatted_by_construction(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "ruff", *arguments, str(GOLDEN / "output")]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


OLDEST = (
    b"\x00\x00\x00\x00\x00\x00\x00\x07"  # ShiftMs
    b"\x00"  # Express
    b"\x3f\xf8\x00\x00\x00\x00\x00\x00"  # Weight
    b"\xff\xfe"  # Lockers
    b"\x00\x02Ka" + b"\x00\x00\x00\x05"  # Origin.Street, Count
    b"\x00\x00\x00\x01!"  # Data
    b"\x00\x00\x00\x01\x00\x01a"  # From
    b"\x00\x00\x00\x02\x00\x00\x00\x01\xff\xff\xff\xff"  # Stops
    b"\x00\x00\x00\x01"  # Parcels
    b"\x00\x00\x00\x09\x00\x01\x00\x02\x00\x00\x00\x03abc"
)


def test_the_oldest_version_on_the_wire() -> None:
    message = read(0, OLDEST)
    module = golden_module()
    assert message == module.ParcelRequest(
        shift_ms=7,
        express=False,
        lockers=65534,
        origin=module.Place(street="Ka"),
        count=5,
        data=b"!",
        from_=["a"],
        stops=[1, -1],
        parcels=[
            module.Parcel(
                number=9,
                the_name_of_the_person_to_whom_the_parcel_goes=1,
                the_name_of_the_person_from_whom_the_parcel_comes=2,
                letters=b"abc",
            )
        ],
    )
    assert write(message, 0) == OLDEST


NEWEST = (
    b"\xff\xff"  # Clerk: null, its length an int16 here too
    b"\x01\x40\x00\x00\x00\x00\x00\x00\x00\x00\x03\xff\xff\xff\xff"  # Express, Weight, Lockers, Checksum
    b"0123456789abcdef"  # RouteId
    b"\x00\x02\x00"  # Origin: Street null, Floor, no tags
    b"\x01\x03Ka\x04\x00"  # Detour is there: Street, Floor, no tags
    b"\x00\x00\x00\x05"  # Count
    b"\x02!"  # Data
    b"\x00"  # Seal: null
    b"\x02\x02a"  # From
    b"\x00"  # Stops: null
    b"\x03\x01\x00"  # Flags
    b"\x02fedcba9876543210"  # RouteIds
    b"\x02\x00\x00\x00\x09\x00\x01\x00\x02\x04abc"  # Parcels, their fields in front of the tags
    b"\x04"  # four tagged fields of the parcel
    b"\x00\x09\x00\x00\x00\x00\x00\x00\x00\x2a\x00"  # 0: Insurance
    b"\x01\x01\x00"  # 1: Receipt, null
    b"\x02\x01\x00"  # 2: Remarks, null
    b"\x08\x02hi"  # 8: unknown
    b"\x06"  # six tagged fields of the message
    b"\x05\x01\x04"  # 5: Priority
    b"\x06\x00"  # 6: unknown
    b"\x07\x10fedcba9876543210"  # 7: ReturnId
    b"\x08\x06\x02\x03Ka\x04\x00"  # 8: Route
    b"\x09\x01\x00"  # 9: Label, null
    b"\x0a\x05\x03\x00\x01\xff\xff"  # 10: Len, a name that the write functions call
)


@pytest.mark.spec("C.1", "D-84", "H-05")
@pytest.mark.parametrize("version", [4, 5])
def test_the_newest_versions_on_the_wire(version: int) -> None:
    message = read(version, NEWEST)
    [parcel] = message.parcels
    assert (message.clerk, message.seal, message.stops, message.flags) == (None, None, None, [True, False])
    assert (message.weight, message.lockers, message.checksum) == (2.0, 3, 0xFFFFFFFF)
    assert (message.origin.street, message.detour.street, message.detour.floor) == (None, "Ka", 4)
    assert (message.route_ids, message.return_id) == ([b"fedcba9876543210"], b"fedcba9876543210")
    assert (parcel.insurance.cents, parcel.receipt, parcel.remarks) == (42, None, None)
    assert (parcel.unknown_tags, message.unknown_tags) == (((8, b"hi"),), ((6, b""),))
    assert (message.priority, message.shift_ms) == (4, 0x7FFFFFFF)
    assert (message.label, message.len) == (None, [1, -1])
    assert [(place.street, place.floor) for place in message.route] == [("Ka", 4)]
    assert write(message, version) == NEWEST


def test_versions_with_one_layout_share_their_functions() -> None:
    codecs = golden_module().CODECS
    assert codecs[4] is not codecs[5]
    assert codecs[4] == codecs[5]
    assert codecs[3] != codecs[4]


@pytest.mark.spec("C.1")
def test_tagged_fields_at_their_defaults_are_not_written() -> None:
    module = golden_module()
    parcel = module.Parcel(insurance=module.Insurance(), receipt=module.Receipt(), remarks=[])
    message = module.ParcelRequest(parcels=[parcel])
    assert write(message, 5).endswith(b"\x00\x00")
    parcel.insurance.unknown_tags = ((9, b"x"),)
    assert write(message, 5).endswith(b"\x01\x00\x0c" + b"\xff" * 8 + b"\x01\x09\x01x" + b"\x00")

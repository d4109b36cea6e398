"""What the embedded cluster advertises for a release is what a real broker of it does."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from kclient.embedded.releases import KNOWN, NEWEST, Release, versions_of
from kclient.errors import ArgumentError
from kclient.protocol.registry import MESSAGES

RECORDINGS = sorted((Path(__file__).parent / "data" / "api_versions").glob("*.json"))
SERVED = {MESSAGES[f"{api}Request"].api_key for api in NEWEST}


def recorded(path: Path) -> dict[int, tuple[int, int]]:
    """API key → versions of a real broker, of all its APIs."""
    rows = json.loads(path.read_text(encoding="utf-8"))["response"]["apiKeys"]
    return {row["apiKey"]: (row["minVersion"], row["maxVersion"]) for row in rows}


def test_nine_brokers_judge() -> None:
    assert [path.stem for path in RECORDINGS] == [
        *("0.10.2.2", "0.11.0.3", "1.1.1", "2.1.1", "2.3.1", "2.8.2", "3.9.1", "4.3.1", "4.4.0"),
    ]


@pytest.mark.spec("C.2")
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_release_advertises_what_the_real_broker_does(path: Path) -> None:
    real = {key: versions for key, versions in recorded(path).items() if key in SERVED}
    assert dict(versions_of(Release.parse(path.stem))) == real


def test_a_newer_release_never_takes_a_newest_version_back() -> None:
    for older, newer in itertools.pairwise(map(Release.parse, KNOWN)):
        assert older < newer
        for key, (_, newest) in versions_of(older).items():
            assert versions_of(newer)[key][1] >= newest


@pytest.mark.parametrize(
    ("text", "release"),
    [("2.8", "2.8"), ("4.4.0", "4.4"), ("4.3.1", "4.3"), ("0.10.2.2", "0.10.2"), ("0.10.0", "0.10.0")],
)
def test_a_release_is_read_without_its_patch_level(text: str, release: str) -> None:
    assert str(Release.parse(text)) == release


@pytest.mark.parametrize("text", ["", "5.0", "0.10", "0.9.0", "2.8.x", "4.3.1.2", "v2.8"])
def test_an_unknown_release_is_refused_and_the_known_ones_named(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"known are 0\.10\.0, .*, 4\.4\."):
        Release.parse(text)

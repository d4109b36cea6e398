"""A Secret reveals its text only through the method for it."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from pathlib import Path

import pytest

from kclient.security import Secret, env, file

TEXT = "correct horse"


@pytest.mark.spec("I-39")
@pytest.mark.parametrize(
    "show",
    [
        str,
        lambda s: f"{s}",
        "{}".format,
        pickle.dumps,
        json.dumps,
        lambda s: json.dumps(s, default=str),
        bytes,
    ],
)
def test_a_secret_refuses_to_become_text_bytes_or_json(show: object) -> None:
    with pytest.raises(TypeError) as caught:
        show(Secret(TEXT))  # type: ignore[operator]
    assert TEXT not in str(caught.value)


@pytest.mark.spec("I-39")
def test_its_repr_is_three_stars_also_within_others() -> None:
    assert repr(Secret(TEXT)) == "***"
    assert repr({"password": [Secret(TEXT)]}) == "{'password': [***]}"


def test_secrets_are_equal_as_their_texts_are_and_their_hash_reports_nothing() -> None:
    assert Secret(TEXT) == Secret(lambda: TEXT)
    assert Secret(TEXT) != Secret("another")
    assert Secret(TEXT) != TEXT
    assert hash(Secret(TEXT)) == hash(Secret("another"))
    assert copy.deepcopy([Secret(TEXT)])[0].reveal() == TEXT


def test_a_provider_is_asked_again_each_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text("first\n")
    monkeypatch.setenv("KC_PASSWORD", "one")
    from_file, from_env = Secret(file(path)), Secret(env("KC_PASSWORD"))
    assert (from_file.reveal(), from_env.reveal()) == ("first", "one")
    path.write_text("second")
    monkeypatch.setenv("KC_PASSWORD", "two")
    assert (from_file.reveal(), from_env.reveal()) == ("second", "two")


@pytest.mark.parametrize("error", [OSError, SystemExit, asyncio.CancelledError])
def test_a_provider_that_fails_in_any_way_has_no_text(error: type[BaseException]) -> None:
    def provider() -> str:
        raise error

    with pytest.raises(ValueError, match=f"failed with {error.__name__}") as caught:
        Secret(provider).reveal()
    assert isinstance(caught.value.__cause__, error)


def test_a_provider_that_has_nothing_says_which(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="environment variable KC_NO_SUCH, which is not set"):
        Secret(env("KC_NO_SUCH")).reveal()
    with pytest.raises(ValueError, match="no-such, which cannot be read: No such file"):
        Secret(file(tmp_path / "no-such")).reveal()
    with pytest.raises(ValueError, match="not as bytes"):
        Secret(lambda: b"bytes").reveal()  # type: ignore[arg-type, return-value]

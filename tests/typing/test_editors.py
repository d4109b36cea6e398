"""What an editor shows of the public names: the meaning of each key, its completion, the docstrings of calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from kclient import AsyncConsumer, Consumer
from tests.typing.language_server import LanguageServer
from tools import write_settings

CLASSES = (Consumer, AsyncConsumer)


@pytest.mark.parametrize("kind", CLASSES)
def test_a_key_is_completed_and_explained(kind: type, tmp_path: Path) -> None:
    begin = f"from kclient import {kind.__name__}\n{kind.__name__}('t', "
    with LanguageServer(f"{begin}auto_│)\n", tmp_path) as server:
        assert {"auto_offset_reset=", "auto_commit_interval_ms="} <= set(server.completions())
    with LanguageServer(f"{begin}auto_offset_│reset='earliest')\n", tmp_path) as server:
        shown = server.hover()
    assert write_settings.meanings()["auto_offset_reset"] in shown
    assert "Default: None." in shown


@pytest.mark.parametrize("kind", CLASSES)
def test_a_call_is_explained(kind: type, tmp_path: Path) -> None:
    with LanguageServer(
        f"from kclient import {kind.__name__}\n{kind.__name__}().com│mit()\n", tmp_path
    ) as server:
        assert "Commit offsets for the group" in server.hover()


@pytest.mark.parametrize("kind", CLASSES)
def test_every_call_has_its_own_docstring(kind: type) -> None:
    calls = [member for name, member in vars(kind).items() if not name.startswith("_") and callable(member)]
    assert [call.__name__ for call in calls if not call.__doc__] == []

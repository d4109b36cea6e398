"""Slips that put a password where none belongs: no error shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kclient.config import load
from kclient.errors import ConfigError

PASSWORD = "hunter2"


@pytest.mark.spec("I-39")
@pytest.mark.parametrize(
    "settings",
    [
        [("sasl.password", PASSWORD)],
        {"bootstrap.servers": f"SASL_SSL://u:{PASSWORD}@h:1"},
        {"bootstrap.servers": f"u:{PASSWORD},h@h:1"},
        {"bootstrap_servers": ["h:1", f"u:{PASSWORD}@h:1"]},
        {"client.id": "x", f"sasl.password{PASSWORD}": "="},
        {f"sasl.password.{PASSWORD}": "x"},
        {f"sasl.password: {PASSWORD}": "x"},
        {f"sasl_jaas_config {PASSWORD}": "x"},
        {PASSWORD: ""},
        {f"{PASSWORD}+/": "x"},
        {"max.poll.records": f"u:{PASSWORD}@h"},
    ],
)
def test_no_problem_of_a_mapping_shows_it(settings: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        load({}, config=settings)
    assert PASSWORD not in str(caught.value)
    assert not any(PASSWORD in problem for problem in caught.value.problems)


@pytest.mark.spec("I-39")
@pytest.mark.parametrize(
    "line", [PASSWORD, f"={PASSWORD}", f"sasl.password{PASSWORD}", f"{PASSWORD}\n{PASSWORD}"]
)
def test_a_line_of_a_file_without_a_key_is_reported_by_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "client.properties"
    path.write_text(f"bootstrap.servers=h:1\n{line}\n")
    with pytest.raises(ConfigError, match=r"client\.properties, line 2") as caught:
        load({}, properties=path)
    assert PASSWORD not in str(caught.value)


def test_a_slip_in_a_key_is_still_shown_with_the_right_one() -> None:
    with pytest.raises(
        ConfigError, match=r"max\.poll\.record \(config\) is unknown; did you mean max_poll_records"
    ):
        load({}, config={"bootstrap.servers": "h:1", "max.poll.record": "5"})

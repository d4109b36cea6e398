"""docs/configuration.md: its blocks run, and its tables hold every key that is not Kafka's, with its default."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kclient.config import load
from kclient.config.model import keys
from kclient.errors import ConfigError
from tests.config.test_nothing_ignored import SETTINGS
from tests.docs.blocks import python_blocks
from tools import write_configuration_keys

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
SECTIONS = dict(section.split("\n", 1) for section in PAGE.split("\n## ")[1:])
OWN, DIFFERENT = SECTIONS["kclient's own keys"], SECTIONS["Where Kafka's keys differ"]
OF_TLS_AND_SASL = re.compile(r"ssl_(?!context)|sasl_(mechanism|jaas_config)$")


def rows(section: str) -> dict[str, list[str]]:
    """Key → the other cells of its row."""
    found = {}
    for line in re.findall(r"^\| (`.*) \|$", section, re.MULTILINE):
        names, *cells = line.split(" | ")
        found.update(dict.fromkeys(re.findall(r"`(\w+)`", names), cells))
    return found


def test_the_blocks_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "client.properties").write_text("bootstrap.servers=localhost:9092\nclient.id=from-the-file\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOSTNAME", raising=False)  # a shell's variable is not in the environment
    for block in python_blocks(PAGE):
        exec(compile(block, "configuration.md", "exec"), {"__name__": "configuration"})
    output = capsys.readouterr().out
    assert re.search(r"^group_id +'billing' +arguments", output, re.MULTILINE)
    assert re.search(r"^client_id +'consumer-billing-\d+' +derived +'kclient'$", output, re.MULTILINE)
    assert re.search(r"^client_rack +'' +default +''$", output, re.MULTILINE)


def test_the_first_table_holds_every_key_of_our_own_with_its_default() -> None:
    kafkas = {key.replace(".", "_") for key in SETTINGS}
    own = {
        field.name: repr(field.default)
        for field in keys()
        if field.name not in kafkas and not OF_TLS_AND_SASL.match(field.name)
    }
    assert {key: cells[0].strip("`") for key, cells in rows(OWN).items()} == own


def test_keys_that_differ_from_kafkas_are_keys_of_kafka() -> None:
    assert rows(DIFFERENT).keys() <= {key.replace(".", "_") for key in SETTINGS}


def test_a_file_writes_a_duration_as_the_page_says() -> None:
    here = {"bootstrap_servers": "localhost:9092"}
    load({**here, "on_no_committed_offset": "PT1H"})
    load({**here, "auto_offset_reset": "by_duration:PT1H"})
    with pytest.raises(ConfigError, match="PT1H"):
        load({**here, "on_no_committed_offset": "an hour"})


def test_the_page_of_all_keys_is_written_from_the_table() -> None:
    assert write_configuration_keys.FILE.read_text() == write_configuration_keys.rendered(), (
        "run python -m tools.write_configuration_keys"
    )
    listed = [name for names in write_configuration_keys.sections().values() for name in names]
    assert listed == [field.name for field in keys()]


def test_the_page_of_all_keys_knows_which_are_kafkas() -> None:
    kafkas, names = {key.replace(".", "_") for key in SETTINGS}, {field.name for field in keys()}
    assert names - kafkas == write_configuration_keys.OWN
    assert names >= write_configuration_keys.SINCE.keys()

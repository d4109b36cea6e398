"""What opening a catalog and its errors say, and what they keep to themselves."""

from __future__ import annotations

import traceback
from pathlib import Path

import pyiceberg.catalog
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError, SinkError
from kclient.spark.sink.iceberg_catalog import open_catalog, table_errors
from tests.cli.support import call
from tests.spark.jobs.iceberg_support import Lake
from tests.spark.test_iceberg import Landing

HIDDEN = "s3cr3t/pass"


def catalog_file(tmp_path: Path, *lines: str) -> str:
    file = tmp_path / "catalog.yaml"
    file.write_text("catalog:\n  prod:\n" + "".join(f"    {line}\n" for line in lines))
    return str(file)


def test_a_catalog_without_a_type_is_asked_for_one_and_its_uri_is_not_shown(tmp_path: Path) -> None:
    file = catalog_file(tmp_path, f"uri: mysql+pymysql://admin:{HIDDEN}@db.example.com/iceberg")
    with pytest.raises(ConfigError, match="Give it one: `type: sql` for a database") as caught:
        open_catalog("prod", file)
    assert HIDDEN not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, str]]:
    """The catalogs that pyiceberg knows by itself: none of this machine's."""
    catalogs: dict[str, dict[str, str]] = {}
    monkeypatch.setattr(pyiceberg.catalog._ENV_CONFIG, "config", {"catalog": catalogs})
    return catalogs


@pytest.mark.parametrize(
    "arguments",
    [
        [
            "-b",
            "{servers}",
            *["--topics", "t", "--sink", "iceberg:prod.db.t", "--checkpoint", "{ckpt}", "--engine", "direct"],
        ],
        ["verify", "--sink", "iceberg:prod.db.t", "--job", "x"],
        ["gc", "--sink", "iceberg:prod.db.t"],
    ],
)
def test_a_catalog_that_is_not_described_anywhere_is_asked_for(
    known: dict[str, dict[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    known["dev"] = {"uri": "sqlite://"}
    with EmbeddedCluster(topics={"t": 1}) as cluster:
        typed = (text.format(servers=cluster.bootstrap_servers, ckpt=tmp_path / "ckpt") for text in arguments)
        done = call(capsys, "ingest", *typed)
    assert not (tmp_path / "ckpt/kclient/job.json").exists()
    assert done.code == 2
    assert (
        "No catalog prod is known, which the sink names; those of pyiceberg's own places are dev." in done.err
    )
    assert "Give --catalog FILE" in done.err
    assert "--uri" not in done.err


@pytest.mark.parametrize("where", ["file", "environment"])
def test_a_catalog_without_a_uri_is_asked_for_one(
    known: dict[str, dict[str, str]], tmp_path: Path, where: str
) -> None:
    known["prod"] = {"type": "rest"}
    file = catalog_file(tmp_path, "type: rest") if where == "file" else None
    with pytest.raises(ConfigError, match=r"The catalog prod has no uri\. .* PYICEBERG_CATALOG__PROD__URI\."):
        open_catalog("prod", file)


@pytest.mark.parametrize(
    "properties",
    [
        {"uri": f"mysql+pymysql://admin:{HIDDEN}@db.example.com/iceberg"},
        {"uri": f"admin:{HIDDEN}@db/iceberg"},
        {"credential": f"me:{HIDDEN}"},
        {"s3.secret-access-key": HIDDEN},
        {"token": HIDDEN},
    ],
)
def test_an_error_that_quotes_a_property_hides_its_secret(properties: dict[str, str]) -> None:
    [value] = properties.values()
    with (
        pytest.raises(SinkError, match="ValueError: no use for") as caught,
        table_errors("prod", "Opening the catalog", properties),
    ):
        raise ValueError(f"no use for {value}")
    assert HIDDEN not in "".join(traceback.format_exception(caught.value))


def test_the_login_in_a_url_of_unknown_origin_is_hidden_and_a_container_is_not() -> None:
    text = "http://me:hush@127.0.0.1:1/v1 and abfss://lake@account.dfs.core.windows.net/x"
    with pytest.raises(SinkError) as caught, table_errors("prod", "Opening the catalog", {}):
        raise ValueError(text)
    assert "http://***@127.0.0.1:1/v1 and abfss://lake@account.dfs.core.windows.net/x" in str(caught.value)


def test_an_error_of_an_open_catalog_hides_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path)
    with lake.catalog_file.open("a") as file:
        file.write(f"    token: {HIDDEN}\n")
    landing = Landing.into(lake)

    def refuse(catalog: SqlCatalog, identifier: object) -> None:
        raise ValueError(f"{HIDDEN} is not welcome")

    monkeypatch.setattr(SqlCatalog, "load_table", refuse)
    with pytest.raises(SinkError, match=r"ValueError: \*\*\* is not welcome"):
        landing.table.load()

"""Stores: what a directory and an object store (here one in memory) do alike, and what each refuses."""

from __future__ import annotations

import itertools
import os
import pickle
import stat
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kclient.errors import ConfigError, SinkError
from kclient.spark.ingest import setting_values
from kclient.spark.sink import local_store
from kclient.spark.sink import store as stores
from kclient.spark.sink.store import (
    LocalStore,
    ObjectMissing,
    ObjectStore,
    Store,
    StoredObject,
    is_remote,
    memory_store,
    places_overlap,
    store_of,
)

KEY = "topic=t/date=2026-11-24/00000.parquet"


@pytest.fixture(params=("directory", "memory"))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return LocalStore(tmp_path / "sink") if request.param == "directory" else memory_store()


def keys(store: Store, prefix: str = "") -> list[str]:
    return sorted(found.key for found in store.list(prefix))


def test_an_absent_object_is_none_and_an_empty_store_lists_nothing(store: Store) -> None:
    assert store.read("a/b") is None
    assert keys(store) == keys(store, "a") == []


def test_put_replaces(store: Store) -> None:
    store.put(KEY, b"one")
    store.put(KEY, b"other")
    assert store.read(KEY) == b"other"


def test_the_first_put_if_absent_wins_and_its_own_content_counts_again(store: Store) -> None:
    assert store.put_if_absent("_manifest/0.json", b"first")
    assert not store.put_if_absent("_manifest/0.json", b"second")
    assert store.put_if_absent("_manifest/0.json", b"first"), "a lost answer: the object is ours"
    assert store.read("_manifest/0.json") == b"first"
    assert keys(store) == ["_manifest/0.json"]


def test_a_list_is_of_the_keys_below_a_path(store: Store) -> None:
    for key in ("a/b", "a/c/d", "ab", "a/.hidden"):
        store.put(key, b"12")
    assert keys(store) == ["a/b", "a/c/d", "ab"]
    assert keys(store, "a") == ["a/b", "a/c/d"]
    found = next(store.list("a/c"))
    assert found == StoredObject("a/c/d", 2, found.modified_ms)
    assert 1_700_000_000_000 < found.modified_ms < 10_000_000_000_000


def test_delete_takes_one_object_and_does_not_need_it(store: Store) -> None:
    store.put("a", b"1")
    store.put("b", b"1")
    store.delete("a")
    store.delete("a")
    assert keys(store) == ["b"]


@pytest.mark.parametrize("size", [0, 10, 3 * stores.PART_BYTES + 5])
def test_a_written_object_appears_whole_at_close(store: Store, size: int) -> None:
    content = os.urandom(size)
    writer = store.open_write(KEY)
    for first in range(0, size, 1_000_000):
        writer.write(content[first : first + 1_000_000])
    assert store.read(KEY) is None
    assert keys(store) == []
    writer.close()
    writer.close()
    assert store.read(KEY) == content
    assert writer.bytes == size


@pytest.mark.parametrize("size", [10, 3 * stores.PART_BYTES + 5])
def test_a_discarded_object_never_appears(store: Store, size: int) -> None:
    with pytest.raises(TypeError), store.open_write(KEY) as writer:
        writer.write(writer.write(bytes(size)))
    writer.discard()
    writer.close()
    assert keys(store) == []


def test_pyarrow_writes_and_reads_a_file_through_it(store: Store) -> None:
    table = pa.table({"a": list(range(1000))})
    with store.open_write(KEY) as file, pq.ParquetWriter(file, table.schema) as writer:
        writer.write_table(table)
    with store.open_read(KEY) as read:
        assert pq.read_table(pa.PythonFile(read, mode="r")).equals(table)


def test_opening_what_is_not_there_is_an_error_with_the_place(store: Store) -> None:
    with pytest.raises(SinkError, match=r"a/b failed: .*[Rr]estore|a/b failed: No such file") as caught:
        store.open_read("a/b")
    assert caught.value.path == store.place("a/b")
    assert isinstance(caught.value, ObjectMissing) or isinstance(store, LocalStore)


@pytest.mark.parametrize("key", ["../a", "a/../b", "/a", "a//b", "a/", "a\0b", "."])
def test_a_key_stays_below_the_store(store: Store, key: str) -> None:
    for call in (store.read, store.delete, store.open_write, store.open_read):
        with pytest.raises(SinkError, match="cannot be the key of an object"):
            call(key)


def test_an_object_larger_than_any_manifest_is_not_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("_manifest/0.json", bytes((1 << 20) + 1))  # read back, so before the limit is lower
    monkeypatch.setattr(stores, "LARGEST_READ", 1 << 20)
    monkeypatch.setattr(local_store, "LARGEST_READ", 1 << 20)
    with pytest.raises(SinkError, match="more than 1 MiB"):
        store.read("_manifest/0.json")


# --- a directory -----------------------------------------------------------------------------------------------------


def test_a_directory_syncs_an_object_before_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []

    def noting(name: str) -> Callable[..., None]:
        real = getattr(os, name)

        def call(*args: object, **named: object) -> None:
            kind = "directory" if name == "fsync" and stat.S_ISDIR(os.fstat(args[0]).st_mode) else "file"
            steps.append(f"{name} {kind}")
            real(*args, **named)

        return call

    store = LocalStore(tmp_path)
    for name in ("fsync", "link", "replace"):
        monkeypatch.setattr(os, name, noting(name))
    store.put_if_absent("a", b"1")
    assert steps == ["fsync file", "link file", "fsync directory"]
    steps.clear()
    with store.open_write("b") as writer:
        writer.write(b"1")
    assert steps == ["fsync file", "replace file", "fsync directory"]
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_full_disk_is_a_sink_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(SinkError, match=r"Writing below .* failed: .*and start again"):
        LocalStore(tmp_path).put("a/b", b"1")


# --- which store -----------------------------------------------------------------------------------------------------


def test_a_store_of_a_path_and_of_a_url(tmp_path: Path) -> None:
    assert store_of(tmp_path) == store_of(str(tmp_path)) == store_of(f"file://{tmp_path}")
    assert store_of("s3a://bucket/a/").url == "s3://bucket/a"
    assert store_of("s3://bucket/a").place("b/c") == "s3://bucket/a/b/c"
    assert store_of(tmp_path).place("b/c") == str(tmp_path / "b/c")
    assert [is_remote(url) for url in ("/a", "file:///a", "s3://a", "abfss://c@a.dfs.core.windows.net")] == [
        False,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("one", "other", "are"),
    [
        ("s3://lake/raw", "s3://lake/raw", True),
        ("s3://lake/raw", "S3A://LAKE/raw/dead/", True),
        ("s3://lake", "s3://lake/raw", True),
        ("s3://lake/raw", "s3://lake/rawer", False),
        ("s3://lake/raw", "s3://pond/raw", False),
        ("s3://lake/raw", "gs://lake/raw", False),
        ("s3://lake/raw", "/lake/raw", False),
        ("az://box/raw", "abfss://box@account.dfs.core.windows.net/raw", True),
        (
            "abfs://box@account.blob.core.windows.net/raw",
            "abfss://box@ACCOUNT.dfs.core.windows.net/raw",
            True,
        ),
        ("abfss://box@account.dfs.core.windows.net/raw", "abfss://box@other.dfs.core.windows.net/raw", False),
        ("/lake/raw", "/lake/raw/dead", True),
        ("/lake/raw", "/lake/rawer", False),
    ],
)
def test_whether_two_places_overlap(one: str, other: str, are: bool) -> None:
    assert (places_overlap(one, other), places_overlap(other, one)) == (are, are)


def test_two_directories_overlap_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "raw")
    assert places_overlap(str(tmp_path / "link" / "dead"), str(tmp_path / "raw"))


def test_a_url_has_one_form() -> None:
    assert store_of("S3://bucket/a b/ü/").url == "s3://bucket/a b/ü"
    assert store_of("S3A://bucket").url == "s3://bucket"


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:///lake/a#b", "/lake/a#b"),
        ("file:///lake/a?b", "/lake/a?b"),
        ("file:///lake/a%20b", "/lake/a%20b"),
        ("FILE:///lake/a", "/lake/a"),
        ("file:/lake/a", "/lake/a"),
    ],
)
def test_a_file_url_is_the_same_path_for_a_job_and_for_looking_at_it(url: str, path: str) -> None:
    assert (setting_values.place(url), store_of(url).url) == (path, path)


@pytest.mark.parametrize("url", ["file://host/lake", "file:lake", "file://", "file://lake", "FILE:////"])
def test_a_file_url_names_a_path_of_this_machine_from_its_root(url: str) -> None:
    with pytest.raises(ConfigError, match=r"file:///PATH"):
        store_of(url)
    with pytest.raises(ValueError, match=r"file:///PATH"):
        setting_values.place(url)


@pytest.mark.parametrize("url", ["gs://bucket/a", "abfss://box@account.dfs.core.windows.net/a"])
def test_stores_of_other_clouds_are_made(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")
    monkeypatch.setenv("AZURE_SKIP_SIGNATURE", "true")
    assert store_of(url).place("b") == f"{url}/b"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("s3://bucket", "AWS_ENDPOINT_URL"),
        ("gs://bucket", "GOOGLE_BASE_URL"),
        ("abfss://box@account.dfs.core.windows.net", "AZURE_STORAGE_ENDPOINT"),
    ],
)
def test_only_a_service_whose_own_endpoint_has_no_tls_is_asked_without(
    url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for known in itertools.chain(*stores.ENDPOINTS.values()):
        monkeypatch.setenv(known, "http://127.0.0.1:1")
    for known in stores.ENDPOINTS[stores.SCHEMES[url.partition(":")[0]]]:
        monkeypatch.setenv(known, "https://127.0.0.1:1")
    assert not stores.is_plain_endpoint(url)
    monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert stores.is_plain_endpoint(url)


@pytest.mark.parametrize(
    ("url", "name", "value", "text"),
    [
        (
            "abfss://box/a",
            "AZURE_STORAGE_ACCOUNT_KEY",
            "YQ==",
            r"Account must be specified\. Write abfss://CONTAINER@",
        ),
        (
            "abfss://box@account.dfs.core.windows.net",
            "AZURE_STORAGE_ACCOUNT_KEY",
            "canary key",
            "Invalid Access Key",
        ),
        (
            "gs://box/a",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "/no/file",
            "Unable to open .* as GOOGLE_APPLICATION_CRED",
        ),
    ],
)
def test_credentials_that_no_store_can_be_made_with_are_named(
    url: str, name: str, value: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for known in [known for known in os.environ if known.startswith(("AZURE_", "GOOGLE_"))]:
        monkeypatch.delenv(known)
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=f"cannot be used as a store: .*{text}") as caught:
        store_of(url, {"endpoint" if name.startswith("AZURE") else "base_url": "http://127.0.0.1:1"})
    assert "canary" not in str(caught.value)
    assert name in str(caught.value)


def test_the_xml_of_an_answer_is_not_shown_but_for_its_code() -> None:
    """Azure's begins with a byte order mark; an emulator's has two lines."""
    for answer in ("\ufeff<?xml version='1.0'?>", "<?xml version='1.0'?>\n"):
        text = f"Server returned 404 Not Found: {answer}<Error><Code>ContainerNotFound</Code>canary</Error>"
        with pytest.raises(SinkError, match=r"404 Not Found \(ContainerNotFound\)\. The bucket") as caught:
            memory_store().fail(OSError(text), "Reading", "a")
        assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://host/a", "no store that kclient knows"),
        ("s3:///a", "names no bucket"),
        ("s3://bucket/a/../b", "has a second spelling"),
        ("s3://bucket/canary/%2e%2e/b", "has a second spelling"),
        ("s3://bucket/canary%20b", "a space as it is, and no escapes"),
        ("s3://bucket/canary/./b", "has a second spelling"),
        ("s3://bucket/canary//b", "has a second spelling"),
        ("s3://bucket/canary ", "has a second spelling"),
        ("s3://bucket/can\nary", "has a second spelling"),
        ("s3://user:canary@bucket/a", "holds credentials"),
        ("s3://canary@bucket/a", "holds credentials"),
        ("s3://canary:abc/defcanary@bucket/a", "holds credentials"),
        ("s3://canary:abc?def#canary@bucket/a", "holds credentials"),
        ("gs://[canary/a", "names no bucket"),
        ("abfss://canary@box@account.dfs.core.windows.net/a", "holds credentials"),
        ("abfss://box:canary@account.dfs.core.windows.net/a", "holds credentials"),
        ("abfss://box@account.dfs.core.windows.net/a?sig=canary", "holds credentials, a port, a query"),
        ("s3://bucket/canary#a", "a query or a fragment"),
    ],
)
def test_a_url_that_cannot_be_a_store_is_refused(url: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        store_of(url)
    assert "canary" not in str(caught.value)


def test_options_that_are_secrets_or_unknown_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"secret_access_key .* are credentials") as caught:
        store_of("s3://bucket", {"secret_access_key": "canary"})
    assert "canary" not in str(caught.value)
    with pytest.raises(ConfigError, match="cannot be used as a store"):
        store_of("s3://bucket", {"no_such_option": "1"})
    with pytest.raises(ConfigError, match="is a directory: the options"):
        store_of("/a", {"region": "x"})


def test_a_pickled_store_takes_its_url_and_options_and_no_credentials(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "canary-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-secret")
    store = store_of("s3://bucket/a", {"region": "eu-central-1"})
    pickled = pickle.dumps(store)
    assert b"canary" not in pickled
    assert "canary" not in repr(store)
    again = pickle.loads(pickled)
    assert isinstance(again, ObjectStore)
    assert (again.url, again.options) == (store.url, {"region": "eu-central-1"})
    assert pickle.loads(pickle.dumps(store_of(tmp_path))) == store_of(tmp_path)

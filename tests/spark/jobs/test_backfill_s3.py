"""Backfills into an object store: claims take the place of the lock, so that a job and backfills never overlap."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import SinkError
from kclient.spark.ingest import backfill, preflight, sink_claims
from kclient.spark.ingest.backfill import Backfill
from kclient.spark.ingest.sink_claims import OffsetClaim, claim
from kclient.spark.sink import manifest
from kclient.spark.sink.store import ObjectStore, store_of
from kclient.types import TopicPartition
from tests.s3 import Bucket
from tests.spark.jobs import killing
from tests.spark.jobs.killing import OBJECT_STORE_STEPS, Step
from tests.spark.jobs.support import assert_exactly_once, fill, given, offsets_file, run
from tests.spark.jobs.test_direct_s3 import places, unnamed

pytestmark = [pytest.mark.timeout(120), pytest.mark.spec("SP-82", "SP-89")]

TP, OTHER = TopicPartition("orders", 0), TopicPartition("clicks", 3)
CLAIMED = "They would count twice, so nothing was written"
STEPS: Mapping[str, Step] = {
    "before the claim": Step(sink_claims, "claim", "before"),
    "after the claim": Step(sink_claims, "claim", "after"),
    **{name: step for name, step in OBJECT_STORE_STEPS.items() if "upload" in name or "manifest" in name},
}


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 1}) as running:
        yield running


def test_a_backfill_lands_once_beside_its_job(cluster: EmbeddedCluster, s3: Bucket, tmp_path: Path) -> None:
    wanted = fill(cluster, 20)
    run(cluster, tmp_path, **places(s3), start="latest")
    wanted += fill(cluster, 10, first=20)
    run(cluster, tmp_path, **places(s3))
    for rows in (20, 0):
        assert run(cluster, tmp_path, **places(s3), backfill=True).results[0].rows == rows
    wanted += fill(cluster, 10, first=30)
    run(cluster, tmp_path, **places(s3))
    assert_exactly_once(s3.url("raw"), wanted)
    with pytest.raises(SinkError, match=r"its manifest backfill-[0-9a-f]{16} covers these offsets"):
        run(cluster, tmp_path, **places(s3), backfill=True, start=offsets_file(tmp_path, 5))
    assert_exactly_once(s3.url("raw"), wanted)


def test_of_two_backfills_that_overlap_the_second_one_is_refused_before_it_writes(
    cluster: EmbeddedCluster, s3: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one looked before the first one had claimed anything."""
    wanted = fill(cluster, 20)
    run(cluster, tmp_path, **places(s3), start="latest")
    prepare = backfill.prepare

    def slowly(settings: Any) -> Backfill:
        found = prepare(settings)
        monkeypatch.setattr(backfill, "prepare", prepare)
        run(cluster, tmp_path, **places(s3), backfill=True)
        return found

    monkeypatch.setattr(backfill, "prepare", slowly)
    with pytest.raises(SinkError, match=CLAIMED):
        run(cluster, tmp_path, **places(s3), backfill=True, start=offsets_file(tmp_path, 5))
    assert_exactly_once(s3.url("raw"), wanted)
    assert unnamed(s3) == []


def test_a_job_that_begins_beside_a_backfill_of_its_records_is_refused(
    cluster: EmbeddedCluster, s3: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint of the backfill was mistyped, and the job looked before its claim."""
    wanted = fill(cluster, 20)
    mistyped = places(s3, checkpoint=s3.url("checkpiont"))
    begin = preflight.Prepared.claim

    def slowly(prepared: preflight.Prepared) -> preflight.Prepared:
        run(cluster, tmp_path, **mistyped, backfill=True)
        return begin(prepared)

    monkeypatch.setattr(preflight.Prepared, "claim", slowly)
    with pytest.raises(SinkError, match=rf"backfill-\w+ lands offsets of orders-0 .*{CLAIMED}"):
        run(cluster, tmp_path, **places(s3))
    assert_exactly_once(s3.url("raw"), wanted)


def test_a_backfill_beside_a_job_that_has_landed_nothing_yet_is_refused(
    cluster: EmbeddedCluster, s3: Bucket, tmp_path: Path
) -> None:
    """The sink does not say whose it is before the first batch; the job's claim does."""
    run(cluster, tmp_path, **places(s3))
    wanted = fill(cluster, 20)
    mistyped = places(s3, checkpoint=s3.url("checkpiont"))
    with pytest.raises(SinkError, match=CLAIMED):
        run(cluster, tmp_path, **mistyped, backfill=True)
    run(cluster, tmp_path, **places(s3))
    assert_exactly_once(s3.url("raw"), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step_a_backfill_lands_once(
    cluster: EmbeddedCluster, s3: Bucket, tmp_path: Path, step: str
) -> None:
    text: dict[str, Any] = {"format": "json", "schema": "id INT", "on_bad_record": "dlq"}
    text["dlq"] = f"parquet:{s3.url('dead')}"
    fill(cluster, 20)
    run(cluster, tmp_path, **places(s3), **text, start="latest")
    wanted = {**places(s3), **text, "backfill": True, "group": None}
    assert killing.killed(given(cluster.bootstrap_servers, tmp_path, **wanted), step, 0, __name__) == -9
    run(cluster, tmp_path, **wanted)
    assert [manifest.count(s3.url(place)) for place in ("raw", "dead")] == [0, 20]
    assert run(cluster, tmp_path, **wanted).results[0].rows == 0


@pytest.mark.parametrize("start", [{TP: 0}, {TP: 9}, {TP: 12}, {OTHER: 0}, {TopicPartition("orders", 1): 0}])
def test_claims_overlap_where_both_have_an_offset(start: dict[TopicPartition, int]) -> None:
    job, part = OffsetClaim("job", {TP: 10}), OffsetClaim("part", start, dict.fromkeys(start, 12))
    overlap = next(iter(start)).topic == "orders" and 12 not in start.values()
    assert (job.overlap(part) is not None) == (part.overlap(job) is not None) == overlap


@pytest.mark.parametrize("first", ["job", "part"])
def test_topics_that_will_match_the_pattern_of_a_job_are_claimed_by_it(s3: Bucket, first: str) -> None:
    """The topic did not exist when the job began, so the job reads it from its first record on."""
    later = TopicPartition("orders-eu", 0)
    job = OffsetClaim("job", {TP: 10}, topics=("orders.*",))
    part = OffsetClaim("part", {later: 0}, {later: 5})
    one, two = (job, part) if first == "job" else (part, job)
    claim(s3.url("raw"), one)
    with pytest.raises(SinkError, match=r"lands offsets of orders-eu-0"):
        claim(s3.url("raw"), two)


def test_the_claim_of_a_job_has_its_topics(cluster: EmbeddedCluster, s3: Bucket, tmp_path: Path) -> None:
    fill(cluster, 5)
    run(cluster, tmp_path, **places(s3), topics="orde.*")
    later = TopicPartition("orders-eu", 0)
    with pytest.raises(SinkError, match=r"lands offsets of orders-eu-0"):
        claim(s3.url("raw"), OffsetClaim("part", {later: 0}, {later: 5}))


def test_of_claims_at_once_those_that_do_not_overlap_are_kept(s3: Bucket) -> None:
    """Four want the same offsets, four others have some of their own."""
    sink, start, refused = s3.url("raw"), threading.Barrier(8), list[int]()
    store = store_of(sink)
    assert isinstance(store, ObjectStore)

    def one(number: int) -> None:
        first = 0 if number < 4 else number * 100
        start.wait()
        try:
            claim(sink, OffsetClaim(f"backfill-{number}", {TP: first}, {TP: first + 100}))
        except SinkError:
            refused.append(number)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 3
    assert max(refused) < 4
    keys = sorted(found.key for found in store.list(sink_claims.CLAIMS))
    assert keys == [f"{sink_claims.CLAIMS}/{number:012d}" for number in range(1, 6)]


@pytest.mark.parametrize("content", [b'{"name": 1', b"[" * 100_000])
def test_a_claim_that_was_damaged_is_named(s3: Bucket, content: bytes) -> None:
    claim(s3.url("raw"), OffsetClaim("one", {TP: 0}, {TP: 1}))
    store_of(s3.url("raw")).put(f"{sink_claims.CLAIMS}/000000000001", content)
    with pytest.raises(SinkError, match=r"The claim s3://.*/raw/_kclient/claims/000000000001 cannot be read"):
        claim(s3.url("raw"), OffsetClaim("two", {TP: 0}, {TP: 1}))


if __name__ == "__main__":
    killing.main(STEPS)

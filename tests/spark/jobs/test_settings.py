"""What the settings of an ingest job may be, and what they say against each other; all of it in one error."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kclient.errors import ConfigError
from kclient.spark.ingest.setting_values import SINKS
from kclient.spark.ingest.settings import IngestSettings

GIVEN: dict[str, Any] = {
    "bootstrap": "localhost:9092",
    "topics": "orders",
    "sink": "parquet:/lake/raw",
    "checkpoint": "/lake/ckpt",
}
JSON = {"format": "json", "schema": "a INT"}
DEAD = {**JSON, "on_bad_record": "dlq"}
OVERLAP = (
    "{0} and {1} must be two places, and neither inside the other: what cleans or replaces files of the one would "
    "take those of the other"
)


def parse(**given: Any) -> IngestSettings:
    return IngestSettings.parse({**GIVEN, **given})


def problems(**given: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse(**given)
    return tuple(caught.value.problems)


@pytest.mark.spec("SP-83")
@pytest.mark.parametrize("topics", ["a{1,2}", "orders,a{1,}", "a{,2}"])
def test_an_expression_that_a_comma_cuts_is_refused(topics: str) -> None:
    """Its halves are expressions, too, but not what was meant."""
    [problem] = problems(topics=topics)
    assert "whose braces are not in pairs: a comma always ends a name" in problem
    assert parse(topics="a{2},(b|bb)").topics == ("a{2}", "(b|bb)")


@pytest.mark.spec("SP-89")
def test_a_table_is_written_by_spark() -> None:
    settings = parse(sink="table:ice.db.orders")
    assert (str(settings.sink), settings.writer) == ("table:ice.db.orders", "spark")
    assert "CATALOG.DATABASE.NAME" in problems(sink="table:orders")[0]
    assert problems(sink="table:ice.db.orders", writer="direct") == (
        "--writer direct writes files: a table needs --writer spark",
    )


def test_two_places_are_one_however_they_are_spelled() -> None:
    dead = {**JSON, "on_bad_record": "dlq", "dlq": "parquet:/lake/x/../raw/"}
    assert problems(**dead) == (OVERLAP.format("--sink", "--dlq"),)
    assert problems(checkpoint="/lake/x/y/../../raw") == (OVERLAP.format("--sink", "--checkpoint"),)
    assert parse(sink="parquet:/../lake/x/../raw").sink.where == "/lake/raw"


@pytest.mark.parametrize(
    ("places", "which"),
    [
        ({"checkpoint": "/lake/raw/_manifest"}, "--sink --checkpoint"),
        ({"sink": "parquet:/lake/raw/topic=t", "checkpoint": "/lake/raw"}, "--sink --checkpoint"),
        ({"sink": "parquet:/lake/c/kclient", "checkpoint": "/lake/c"}, "--sink --checkpoint"),
        ({"sink": "delta:/lake/raw", "checkpoint": "/lake/raw/_delta_log"}, "--sink --checkpoint"),
        ({"sink": "delta:/lake/raw", "checkpoint": "/lake/raw/checkpoint"}, "--sink --checkpoint"),
        ({"sink": "delta:s3://lake/raw", "checkpoint": "S3A://lake/raw/checkpoint"}, "--sink --checkpoint"),
        ({"sink": "delta:/lake/raw", "dlq": "parquet:/lake/raw/dead", **DEAD}, "--sink --dlq"),
        ({"sink": "iceberg:c.db.t", "dlq": "parquet:/lake/ckpt/dead", **DEAD}, "--dlq --checkpoint"),
        ({"from_dlq": "parquet:/lake/ckpt", **JSON}, "--from-dlq --checkpoint"),
        ({"from_dlq": "parquet:/lake/raw/dead", **JSON}, "--sink --from-dlq"),
        (
            {"from_dlq": "parquet:/lake/dead", "dlq": "parquet:file:///lake/dead", **DEAD},
            "--dlq --from-dlq",
        ),
    ],
)
def test_no_place_lies_in_another(places: dict[str, Any], which: str) -> None:
    assert problems(**places) == (OVERLAP.format(*which.split()),)


@pytest.mark.parametrize("end", ["@2026-01-03Z", "@2026-01-05Z"])
def test_a_backfill_ends_after_it_starts(end: str) -> None:
    assert problems(backfill=True, start="@2026-01-05Z", end=end) == (
        "--end is not after --start: there is nothing between them to land",
    )
    parse(backfill=True, start="@2026-01-03Z", end="@2026-01-05Z")


def test_an_option_is_given_once_however_it_is_spelled() -> None:
    given = ["fetch.readAhead=1", "maxRecordsPerPartition=5", "maxrecordsperpartition=7"]
    assert problems(options=given) == (
        "--options maxrecordsperpartition repeats --options maxRecordsPerPartition; give one of them",
    )


def test_places_beside_each_other_are_fine() -> None:
    parse(sink="parquet:/lake/raw", checkpoint="/lake/raw-checkpoint", dlq="parquet:/lake/_dead", **DEAD)
    parse(sink="iceberg:c.db.t", checkpoint="/lake/ckpt", dlq="parquet:s3://lake/ckpt", **DEAD)


def test_a_missing_home_directory_is_reported_with_the_other_problems() -> None:
    assert problems(sink="parquet:~nobody.has/this") == (
        "--sink cannot be below ~nobody.has: there is no such home directory",
    )


@pytest.mark.parametrize("time", ["5", "5s", "5000ms", " 5s "])
def test_a_trigger_is_a_time_with_and_without_its_unit(time: str) -> None:
    assert str(parse(trigger=time).trigger) == "5s"


def test_a_trigger_that_is_none_is_shown() -> None:
    assert problems(trigger="0s") == (
        "--trigger must be availableNow, once, or a time such as 10s, not '0s'",
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"sink": "/lake/x"}, "--sink must name its kind: write parquet:/lake/x"),
        ({"sink": "ice.db.orders"}, "--sink must name its kind: write table:ice.db.orders"),
        ({"sink": "parquet:"}, f"--sink must be {SINKS}"),
        ({"parallelism": "0"}, "--parallelism must be at least 1 and fit in 64 bits, not '0'"),
        ({"max_per_trigger": "many"}, "--max-per-trigger must be a whole number, not 'many'"),
        ({"max_per_trigger": "1.5"}, "--max-per-trigger must be a whole number, not '1.5'"),
    ],
)
def test_a_value_that_cannot_be_is_shown(given: dict[str, str], problem: str) -> None:
    assert problem in problems(**given)


@pytest.mark.parametrize("name", ["nofile.json", "schemas/order.ddl", "schemas/order", "/lake/my order.sql"])
def test_a_file_that_is_not_there_is_reported_as_one(name: str) -> None:
    problem, *_ = problems(format="json", schema=name)
    assert problem == f"--schema names the file {name}, which cannot be read: No such file or directory"


@pytest.mark.parametrize("schema", ["string", "id bigint, `a.b` int", "decimal(3,1)", '{"type": "int"}'])
def test_a_schema_is_no_file(schema: str) -> None:
    assert parse(format="json", schema=schema).schema == schema


@pytest.mark.spec("SP-81", "SP-87")
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"writer": "spark"}, "--engine direct has no Spark, so --writer spark cannot be"),
        ({"sink": "table:a.b.c"}, "--engine direct has no Spark, so a table cannot be"),
        ({"format": "json", "schema": "infer"}, "--schema infer needs --engine spark, which finds the types"),
    ],
)
def test_the_engine_without_spark_refuses_in_a_sentence(given: dict[str, Any], sentence: str) -> None:
    [problem] = problems(engine="direct", **given)
    assert problem.startswith(sentence)


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"writer": "spark", "on_bad_record": "dlq", "dlq": "parquet:/dlq", **JSON}, "needs --writer direct"),
        ({"writer": "spark", "backfill": True}, "--backfill lands through a manifest"),
        ({"writer": "spark", "from_dlq": "parquet:/dlq", **JSON}, "--from-dlq lands through a manifest"),
        ({"max_latency": "1m", "trigger": "10s"}, "--max-latency needs --target-file-mb"),
        ({"max_latency": "1m", "target_file_mb": 8}, "--max-latency is for --trigger DURATION"),
        ({"on_new_field": "add"}, "--on-new-field add is for --format json"),
        ({"on_new_field": "fail"}, "--on-new-field fail is for --format json"),
        (
            {"on_new_field": "rescue", "format": "string"},
            "--on-new-field rescue is for --format json, avro and",
        ),
        ({"format": "avro", "schema": "infer"}, "--schema infer is for --format json"),
        ({"dlq": "table:a.b.c", "on_bad_record": "dlq", **JSON}, "--dlq must be parquet:DIRECTORY"),
        ({"start": "group", "backfill": True}, "--start group needs --group"),
        (
            {"target_file_mb": "128", "options": ["maxRecordsPerPartition=5"]},
            "--target-file-mb and --options maxRecordsPerPartition both set the size of files",
        ),
        ({"options": ["minPartitions=5"]}, "--options minPartitions repeats --parallelism"),
        (
            {"start": "@2026-01-01T00:00Z", "options": ["startingOffsetsByTimestampStrategy=error"]},
            "--options startingOffsetsByTimestampStrategy repeats --start",
        ),
        ({"options": ["arrow.batch.rows=5"]}, "--options arrow.batch.rows is for --writer spark"),
        ({"options": ["Arrow.Batch.Bytes=65536"]}, "--options Arrow.Batch.Bytes is for --writer spark"),
        (
            {
                "format": "avro",
                "schema": "registry:https://a:1",
                "options": ["schema.registry.url=https://b:1"],
            },
            "--options schema.registry.url repeats --schema registry:URL",
        ),
    ],
)
def test_what_cannot_be_together_is_reported(given: dict[str, Any], sentence: str) -> None:
    assert [problem for problem in problems(**given) if sentence in problem]


@pytest.mark.spec("SP-42")
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"options": ["kafka.fetch.max.wait=10"]},
            "--set or --properties: fetch.max.wait is unknown; did you mean fetch_max_wait_ms?",
        ),
        (
            {"options": ["kafka.enable.auto.commit=true"]},
            "--set or --properties: enable.auto.commit cannot be set: "
            "to commit progress to a group give --group",
        ),
        (
            {"options": ["kafka.group.id=a"]},
            "--set or --properties: group.id repeats --group; give only that",
        ),
        (
            {"options": ["commitOffsets=true"]},
            "--options commitOffsets repeats --group; give only that",
        ),
        (
            {"options": ["failOnDataLoss=false"]},
            "--options failOnDataLoss repeats --fail-on-data-loss or --accept-data-loss; give only that",
        ),
        (
            {"options": ["includeHeaders=false"]},
            "--options includeHeaders repeats --headers or --no-headers; give only that",
        ),
        ({"options": ["fetch.readAhead=9"]}, "--options fetch.readAhead='9' must be at most 4"),
        ({"options": ["colour=red"]}, "--options colour is unknown; keys of Kafka itself begin with kafka."),
        (
            {"format": "avro", "schema": "registry:http://h:1"},
            "--schema registry:URL must be https; over a network that you trust "
            "give --options schema.registry.allowHttp=true",
        ),
        (
            {"engine": "direct", "master": "yarn"},
            "--master is for --engine spark: the direct engine has no Spark",
        ),
        (
            {"engine": "direct", "conf": ["a=b"]},
            "--conf is for --engine spark: the direct engine has no Spark",
        ),
    ],
)
def test_a_problem_names_what_was_typed(given: dict[str, Any], problem: str) -> None:
    assert problems(**given) == (problem,)


@pytest.mark.spec("SP-88", "SP-89")
@pytest.mark.parametrize(
    ("given", "useless"),
    [
        ({"backfill": True, "trigger": "10s", "max_per_trigger": "5"}, {"--max-per-trigger", "--trigger"}),
        ({"backfill": True, "start": "earliest", "group": "lake"}, {"--group"}),
        (
            {
                "from_dlq": "parquet:/dlq",
                "start": "latest",
                "trigger": "10s",
                "max_per_trigger": "1",
                "parallelism": "7",
                "target_file_mb": "1",
                "group": "lake",
                "fail_on_data_loss": False,
                "master": "yarn",
                "conf": ["a=b"],
                **JSON,
            },
            {"--start", "--trigger", "--max-per-trigger", "--parallelism", "--target-file-mb", "--group"}
            | {"--accept-data-loss", "--master", "--conf"},
        ),
    ],
)
def test_what_lands_beside_a_job_refuses_what_it_has_no_use_for(
    given: dict[str, Any], useless: set[str]
) -> None:
    found = problems(**given)
    assert all("would do nothing with --" in problem for problem in found)
    assert {problem.split()[0] for problem in found} == useless


def test_a_limit_of_a_backfill_is_answered_with_days() -> None:
    [problem] = problems(backfill=True, max_per_trigger="5e6")
    assert problem.endswith("cut the backfill with --start and --end, one run for each day")


@pytest.mark.spec("SP-83")
def test_an_age_counts_from_now() -> None:
    before = time.time_ns() // 1_000_000
    options = parse(backfill=True, start="@-3d", end="@now").batch_options()
    assert 0 <= int(options["startingTimestamp"]) - (before - 3 * 86_400_000) < 60_000
    assert 0 <= int(options["endingTimestamp"]) - before < 60_000


@pytest.mark.parametrize("given", ["@yesterday", "@-3days", "@2026-11-31Z", "@", "@9" * 10])
def test_a_time_that_cannot_be_read_is_answered_with_ones_that_can(given: str) -> None:
    [problem] = problems(start=given)
    assert problem.startswith("--start has the time ")
    assert problem.endswith("cannot be read: write 2026-11-20T14:00Z, 2026-11-20Z, -1h or now")


@pytest.mark.spec("SP-89")
def test_a_backfill_may_begin_where_a_group_has_committed() -> None:
    options = parse(backfill=True, start="group", group="lake", parallelism="2").batch_options()
    assert (options["startingOffsets"], options["commit.group.id"]) == ("group", "lake")


@pytest.mark.spec("SP-42")
def test_options_that_no_setting_says_reach_the_source() -> None:
    registry = {"schema.registry.url": "https://b:1", "keyFormat": "avro"}
    settings = parse(options=[f"{name}={text}" for name, text in registry.items()], **JSON)
    assert settings.stream_options().items() >= registry.items()
    assert parse(writer="spark", options=["arrow.batch.rows=5"]).stream_options()["arrow.batch.rows"] == "5"
    assert parse(options=["maxElementsPerValue=5"]).stream_options()["maxElementsPerValue"] == "5"


@pytest.mark.spec("SP-42")
def test_everything_that_is_wrong_is_reported_at_once() -> None:
    found = problems(
        codec="brotli", trigger="soon", on_new_field="add", end="@2026-01-01T00:00Z", colour="red"
    )
    assert len(found) == 5
    assert all(
        any(word in problem for problem in found)
        for word in ("codec", "trigger", "on-new-field", "end", "colour")
    )


@pytest.mark.parametrize(
    "given",
    [
        {"format": "avro", "schema": "nofile.avsc"},
        {"format": "jsn", "schema": "a INT"},
        {**JSON, "on_bad_record": "dlq", "dlq": "/lake/dead"},
    ],
)
def test_what_is_wrong_alone_is_not_missing(given: dict[str, Any]) -> None:
    assert len(problems(**given)) == 1


@pytest.mark.spec("SP-87")
def test_fields_are_rescued_unless_another_rule_is_given() -> None:
    assert parse(**JSON).rescue
    assert not parse(**JSON, on_new_field="ignore").rescue
    assert parse(format="avro", schema='{"type": "int"}').rescue
    for form in ("raw", "string"):
        assert (parse(format=form).on_new_field, parse(format=form).rescue) == ("ignore", False)
    assert not parse(**JSON, on_new_field="fail").rescue
    assert parse(**JSON, on_new_field="add").rescue
    assert parse(**JSON, on_new_field="rescue").rescue
    inferred = parse(format="json", schema="infer")
    assert inferred.rescue
    assert not parse(format="json", schema="infer", on_new_field="ignore").rescue
    assert "valueFormat" not in inferred.stream_options()


@pytest.mark.spec("SP-89")
def test_files_of_a_size_cut_ranges_in_place_of_parallelism() -> None:
    settings = parse(target_file_mb="1e2", parallelism=8)
    assert settings.target_file_mb == 100
    assert settings.stream_options()["minPartitions"] == "8"
    options = settings.stream_options(rows_per_file=5000)
    assert options["maxRecordsPerPartition"] == "5000"
    assert "minPartitions" not in options

"""The dry run finds everything that would prevent a pipeline from running."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from quire.cli.pipelines.check import check
from quire.client.admin.topics import describe_topics
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import Failure
from quire.protocol.errors import ApiError
from quire.protocol.uuids import to_text
from quire.spark.pipeline_file import parse_pipeline
from quire.spark.state_folder import StateFolder
from tests.spark.filling import append, record

JOB = "pipelines.shop.archive:archive"

Check = Callable[..., list[str]]


@pytest.fixture
def checked(
    spark: SparkSession,
    client: BlockingClient,
    servers: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Check:
    """checked(query) -> the lines that were printed for a pipeline with that query; `problem` is the expected
    failure."""

    def run(query: dict[str, Any], problem: bool = False) -> list[str]:
        whole = {"job": JOB, "sink": {"delta": "raw", "partition_by": ["date"]}} | query
        pipeline = parse_pipeline({"name": "mine", "queries": {"one": whole}}, "mine.yaml")
        folders = [StateFolder(str(tmp_path), pipeline)]
        if problem:
            with pytest.raises(Failure, match="nothing was started"):
                check(client, spark, folders, servers)
        else:
            check(client, spark, folders, servers)
        return capsys.readouterr().out.splitlines()

    return run


def test_a_healthy_pipeline(checked: Check, make_topic: Callable[..., str]) -> None:
    lines = checked({"source": {"subscribe": make_topic(partitions=2)}})
    assert all(line.startswith("  ok ") for line in lines[1:]) and len(lines) == 4


def test_a_topic_that_does_not_exist_and_would_not_be_created(checked: Check) -> None:
    lines = checked({"source": {"subscribe": "nowhere"}}, problem=True)
    assert "PROBLEM  topic nowhere is read but does not exist" in "\n".join(lines)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"job": "pipelines.shop.archive:archiv"}, "module pipelines.shop.archive has no archiv"),
        ({"job": "no.such.module:x"}, "cannot be imported"),
        ({"sink": {"delta": "raw", "partition_by": ["day"]}}, "partitioned by day, which its rows do not have"),
        ({"sink": {"format": "quire", "topic": "t"}}, "there is no place in a record for column 'date'"),
        ({"sink": {"format": "quire", "topik": "t"}, "job": "tests.spark.shop.test_pipelines_check:as_is"}, "topik"),
        ({"job": "tests.spark.shop.test_pipelines_check:broken"}, "cannot be resolved"),
        ({"job": "tests.spark.shop.test_pipelines_check:raising"}, "KeyError: 'price' (test_pipelines_check.py, line"),
        ({"job": "tests.spark.shop.test_pipelines_check:forgetful"}, "returns NoneType, but must return a DataFrame"),
    ],
)
def test_jobs_and_sinks_that_do_not_fit(
    checked: Check, make_topic: Callable[..., str], change: dict[str, Any], said: str
) -> None:
    lines = checked({"source": {"subscribe": make_topic()}} | change, problem=True)
    assert said in "\n".join(lines)
    assert sum("PROBLEM" in line for line in lines) == 1


def test_an_option_with_a_slip_in_its_name_is_answered_with_the_nearest(
    checked: Check, make_topic: Callable[..., str]
) -> None:
    lines = checked({"source": {"subscribe": make_topic(), "maxOffsetPerTrigger": 5}}, problem=True)
    assert "maxOffsetsPerTrigger" in "\n".join(lines)


def test_a_checkpoint_of_other_topics_or_other_offsets(
    checked: Check, make_topic: Callable[..., str], client: BlockingClient, tmp_path: Path
) -> None:
    topic, other = make_topic(), make_topic()
    append(client, topic, [record(b"1"), record(b"2")])
    offsets = tmp_path / "mine" / "checkpoints" / "one" / "offsets"
    offsets.mkdir(parents=True)

    def stands_at(name: str, offset: int, topic_id: str | None = None) -> None:
        known = client.run(describe_topics(client.cluster, [name]))[name]
        real = "x" if isinstance(known, ApiError) else to_text(known.topic_id)
        written = {name: {"id": topic_id or real, "offsets": {"0": offset}}}
        (offsets / "0").write_text(f"v1\n{{}}\n{json.dumps(written)}")

    query = {"source": {"subscribe": topic}}
    stands_at(topic, 1)
    assert "continues from its checkpoint, 1 behind" in "\n".join(checked(query))
    stands_at(topic, 7)
    assert f"is at offset 7, but {topic}-0 has 0 to 2" in "\n".join(checked(query, problem=True))
    stands_at(topic, 1, topic_id="x")
    assert f"topic {topic} was deleted and created again" in "\n".join(checked(query, problem=True))
    stands_at(other, 0)
    assert f"is of topic {other}, which it does not read" in "\n".join(checked(query, problem=True))
    stands_at("gone", 0)
    assert "is of topic gone, which does not exist" in "\n".join(checked(query, problem=True))


def as_is(records: Any) -> Any:
    return records


def broken(records: Any) -> Any:
    return records.select("no_such_column")


def raising(records: Any) -> Any:
    return records.where(dict[str, str]()["price"])


def forgetful(records: Any) -> None:
    records.select("value")

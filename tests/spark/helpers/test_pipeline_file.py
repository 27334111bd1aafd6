"""The YAML file of a pipeline: its meaning, and the errors for a wrong one. Without Spark."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from quire.spark.pipeline_file import (
    DeltaSinkSpec,
    PipelineFileError,
    QuireSinkSpec,
    find_pipelines,
    load_pipeline,
    parse_pipeline,
    results_of,
)

ROOT = Path(__file__).resolve().parents[3]
GOOD = """
name: orders
topics: {orders: {partitions: 3, configs: {retention.ms: 1000}}, totals: {}}
queries:
  totals:
    job: my.module:totals
    source: {subscribe: orders, maxOffsetsPerTrigger: 500, includeHeaders: true}
    sink: {format: quire, topic: totals}
  keep:
    job: my.module:keep
    source: {subscribe: orders}
    sink: {delta: orders/raw, partition_by: [date], compact_every: 7}
    trigger: 10 seconds
    checkpoint: /elsewhere
processes:
  helper: [python, -m, helper, "{servers}"]
"""


def changed(change: Any) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(GOOD)
    change(content)
    return content


def test_a_file_says_everything_about_a_pipeline() -> None:
    pipeline = parse_pipeline(yaml.safe_load(GOOD), "orders.yaml")
    totals, keep = pipeline.queries
    assert (pipeline.name, pipeline.about) == ("orders", "")
    assert [(topic.name, topic.partitions, topic.configs) for topic in pipeline.topics] == [
        ("orders", 3, {"retention.ms": "1000"}),
        ("totals", -1, {}),
    ]
    assert totals.source == {"subscribe": "orders", "maxOffsetsPerTrigger": "500", "includeHeaders": "true"}
    assert (totals.sink, totals.trigger, totals.checkpoint) == (QuireSinkSpec({"topic": "totals"}), "1 second", None)
    assert (keep.sink, keep.trigger) == (DeltaSinkSpec("orders/raw", ("date",), 7), "10 seconds")
    assert keep.checkpoint == "/elsewhere"
    assert pipeline.processes == {"helper": ("python", "-m", "helper", "{servers}")}
    assert results_of(pipeline) == ["totals"]


def test_inputs_that_a_pipeline_does_not_write_are_not_results() -> None:
    def query(sink: dict[str, str], **source: str) -> dict[str, Any]:
        return {"job": "my.module:job", "source": source, "sink": {"format": "quire"} | sink}

    def results(*queries: dict[str, Any]) -> list[str]:
        topics: dict[str, Any] = {"orders": {}, "orders-2": {}, "prices": {}, "clean": {}, "out": {}}
        numbered = {f"q{index}": query for index, query in enumerate(queries)}
        return results_of(parse_pipeline({"name": "p", "topics": topics, "queries": numbered}, "p.yaml"))

    first = query({"sink": "clean"}, subscribe="orders, orders-2")
    assert results(first, query({}, subscribe="clean,prices")) == ["clean", "out"]
    assert results(query({"topic": "orders"}, subscribe="prices,orders")) == ["orders-2", "clean", "out"]
    assert results(query({}, subscribePattern="orders.*")) == ["prices", "clean", "out"]
    assert results(query({}, Assign='{"orders": [0], "prices": [1]}')) == ["orders-2", "clean", "out"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda c: c.update(querys={}), "orders.yaml: there is no 'querys'; did you mean 'queries'?"),
        (lambda c: c.pop("name"), "orders.yaml: 'name' is missing"),
        (lambda c: c.update(name="../x"), "'../x' does not"),
        (lambda c: c.update(name=7), "name is a text, not 7"),
        (lambda c: c["queries"]["keep"].pop("job"), "queries: keep: 'job' is missing"),
        (lambda c: c["queries"]["keep"].update(job="my.module"), "job is module:function, not 'my.module'"),
        (lambda c: c["queries"]["keep"].update(sink={"format": "kafka"}), "a sink has `format: quire`"),
        (lambda c: c["queries"]["keep"].pop("sink"), "a sink has `format: quire`"),
        (lambda c: c["queries"]["keep"].update(source={"subscribe": ["a"]}), "subscribe is a text or a number"),
        (lambda c: c["queries"]["keep"].update(triger="1"), "there is no 'triger'; did you mean 'trigger'?"),
        (lambda c: c["queries"]["keep"]["sink"].update(partition_by="date"), "is a list of texts, not 'date'"),
        (lambda c: c["queries"]["keep"]["sink"].update(compact_every="x"), "is a whole number, not 'x'"),
        (lambda c: c["topics"]["orders"].update(partitions=True), "is a whole number, not True"),
        (lambda c: (c.pop("queries"), c.pop("processes")), "has neither"),
        (lambda c: c.update(queries=[1]), "queries: names and values are expected"),
    ],
)
def test_errors_are_named_with_their_location(change: Any, sentence: str) -> None:
    with pytest.raises(PipelineFileError) as raised:
        parse_pipeline(changed(change), "orders.yaml")
    assert sentence in str(raised.value)


@pytest.mark.parametrize("content", ["", "- a", "7", "{a: [", "\t"])
def test_a_file_that_is_not_a_mapping_or_not_yaml_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(content)
    with pytest.raises(PipelineFileError) as raised:
        load_pipeline(str(path))
    assert str(path) in str(raised.value) and "\n" not in str(raised.value)


def test_files_are_found_in_a_folder_and_right_below_it(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "orders.yaml").write_text(GOOD)
    (tmp_path / "two.yml").write_text(GOOD.replace("name: orders", "name: two"))
    (tmp_path / "notes.txt").write_text("no pipeline")
    assert [pipeline.name for pipeline in find_pipelines(str(tmp_path))] == ["two", "orders"]
    assert find_pipelines(str(tmp_path / "missing")) == []


def test_the_pipelines_that_come_with_quire_can_be_loaded() -> None:
    assert "shop" in [pipeline.name for pipeline in find_pipelines(str(ROOT / "pipelines"))]


def test_every_pipeline_here_leaves_out_what_was_aborted() -> None:
    """`quire dlq replay` sends records in transactions, and repeats a replay that was killed."""
    found = [*find_pipelines(str(ROOT / "pipelines")), *find_pipelines(str(ROOT / "examples"))]
    assert {pipeline.name for pipeline in found} == {"shop", "inventory", "big-orders"}
    levels = {query.source.get("kafka.isolation.level") for pipeline in found for query in pipeline.queries}
    assert levels == {"read_committed"}

"""`quire pipelines run --dry-run`: checks that a pipeline can run, with a line for each check."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from quire.client.admin.topics import describe_topics
from quire.client.metadata import Topic
from quire.client.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import Failure
from quire.console.output import count
from quire.console.terminal import echo
from quire.protocol.errors import ApiError
from quire.protocol.uuids import to_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quire.spark.pipeline_file import QuerySpec
    from quire.spark.state_folder import StateFolder

Finding = tuple[bool, str]
"""Whether the check passed, and the line that describes it."""


def check(client: BlockingClient, spark: "SparkSession", folders: "Sequence[StateFolder]", servers: str) -> None:
    """Prints the findings; Failure if a pipeline cannot run."""
    problems = 0
    for found in folders:
        echo(found.pipeline.name)
        for fine, text in _findings(client, spark, found, servers):
            problems += not fine
            echo(f"  {'ok      ' if fine else 'PROBLEM '} {text}")
    if problems:
        raise Failure(f"{count(problems, 'problem')} found; nothing was started.")


def _findings(client: BlockingClient, spark: "SparkSession", found: "StateFolder", servers: str) -> Iterator[Finding]:
    yield from _topics(client, found)
    for query in found.pipeline.queries:
        yield _schema(spark, found, query, servers)
        yield _checkpoint(client, found, query)


def _topics(client: BlockingClient, found: "StateFolder") -> Iterator[Finding]:
    """Topics that queries read must exist, or be among those that the pipeline creates."""
    created = {topic.name: topic for topic in found.pipeline.topics}
    read = [
        name.strip()
        for query in found.pipeline.queries
        for name in query.source.get("subscribe", "").split(",")
        if name.strip()
    ]
    names = list(dict.fromkeys([*read, *created]))
    known = client.run(describe_topics(client.cluster, names)) if names else {}
    for name in names:
        topic = known[name]
        if not isinstance(topic, ApiError):
            yield True, f"topic {name} has {count(len(topic.partitions), 'partition')}"
        elif name in created:
            yield True, f"topic {name} will be created"
        else:
            yield False, f"topic {name} is read but does not exist; create it, or add it under `topics:`"


def _schema(spark: "SparkSession", found: "StateFolder", query: "QuerySpec", servers: str) -> Finding:
    """The job must accept the source's rows, and produce rows that the sink accepts."""
    from quire.spark.pipeline_file import DeltaSinkSpec
    from quire.spark.runner import JobError, query_rows

    try:
        rows = query_rows(spark, found.pipeline, query, servers)
    except JobError as error:
        return False, str(error)
    if isinstance(query.sink, DeltaSinkSpec):
        missing = [name for name in query.sink.partition_by if name not in rows.columns]
        problem = f"the table is partitioned by {missing[0]}, which its rows do not have" if missing else ""
    else:
        from pyspark_quire.errors import QuireError
        from pyspark_quire.options import Options, Use
        from pyspark_quire.sink_columns import check_columns

        try:
            Options({"kafka.bootstrap.servers": servers, **query.sink.options}, Use.STREAM_WRITE)
            check_columns(rows.schema, query.sink.options.get("topic"))
            problem = ""
        except QuireError as error:
            problem = str(error)
    if problem:
        return False, f"query {query.name}: {problem}"
    return True, f"query {query.name} gives {', '.join(rows.columns)}"


def _checkpoint(client: BlockingClient, found: "StateFolder", query: "QuerySpec") -> Finding:
    """The checkpoint must be of these topics, and its offsets must still exist."""
    from quire.spark.progress import source_offsets
    from quire.spark.state_folder import last_offsets

    path = found.checkpoint(query)
    if not os.path.exists(path):
        return (
            True,
            f"query {query.name} has no checkpoint yet and starts at {query.source.get('startingOffsets', 'latest')}",
        )
    state = last_offsets(path)
    offsets = {TopicPartition(*topic_partition): offset for topic_partition, offset in source_offsets(state)}
    if not offsets:
        return True, f"query {query.name} has a checkpoint in which no batch was planned"
    known: dict[str, Topic] = {}
    names = {topic_partition.topic for topic_partition in offsets}
    for name, topic in client.run(describe_topics(client.cluster, names)).items():
        if isinstance(topic, ApiError):
            return False, f"query {query.name}: its checkpoint is of topic {name}, which does not exist"
        known[name] = topic
    subscribed = [name.strip() for name in query.source.get("subscribe", "").split(",") if name.strip()]
    strange = sorted(names - set(subscribed)) if subscribed else []
    if strange:
        return False, f"query {query.name}: its checkpoint ({path}) is of topic {strange[0]}, which it does not read"
    for name, topic in known.items():
        if to_text(topic.topic_id) != state[name].get("id"):
            return (
                False,
                f"query {query.name}: topic {name} was deleted and created again since its checkpoint was written",
            )
    firsts = client.run(list_offsets(client.cluster, dict.fromkeys(offsets, EARLIEST)))
    ends = client.run(list_offsets(client.cluster, dict.fromkeys(offsets, LATEST)))
    for topic_partition, offset in offsets.items():
        if not firsts[topic_partition].offset <= offset <= ends[topic_partition].offset:
            there = f"{topic_partition} has {firsts[topic_partition].offset} to {ends[topic_partition].offset}"
            return False, f"query {query.name}: its checkpoint is at offset {offset}, but {there}"
    behind = sum(ends[topic_partition].offset - offset for topic_partition, offset in offsets.items())
    return True, f"query {query.name} continues from its checkpoint, {behind:,} behind"

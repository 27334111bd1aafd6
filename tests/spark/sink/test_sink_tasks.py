"""Tasks and drivers of the sink against a real Quire, one after another, without Spark."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient, OffsetSpec
from pyspark.sql.types import StringType, StructField, StructType

from pyspark_quire.batch_writer import BatchWriter
from pyspark_quire.errors import QuireError
from pyspark_quire.exactly_once import TaskPlan
from pyspark_quire.marks import SinkName, TaskMark
from pyspark_quire.options import MARKER_TOPIC, Options, Use
from pyspark_quire.sink_driver import TaskReport, finish
from pyspark_quire.sink_task import write_rows, write_rows_once
from pyspark_quire.stream_task import StreamTask
from pyspark_quire.stream_writer import StreamWriter
from quire.client.admin.groups import delete_groups, list_groups
from quire.client.admin.transactions import describe_transactions
from quire.client.offsets import TopicPartition
from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError, ErrorCode
from quire.testing import Cluster
from tests.spark.conftest import MakeTopic
from tests.spark.sink.log_reader import values


def batch(*texts: str, **columns: Any) -> pa.RecordBatch:
    return pa.record_batch({"value": list(texts), **columns})


class Stream:
    """The tasks and the driver of a query, as Spark runs them."""

    def __init__(self, servers: str, topic: str | None, query_id: str, **options: str) -> None:
        given = {"kafka.bootstrap.servers": servers, **{name.replace("_", "."): v for name, v in options.items()}}
        if topic is not None:
            given["topic"] = topic
        self.options = Options(given, Use.STREAM_WRITE)
        self.sink = SinkName(query_id, topic or "rows")

    def plan(self, batch_id: int, task: int, **more: bool) -> TaskPlan:
        return TaskPlan(self.sink, batch_id, task, **more)

    def task(self, batch_id: int, task: int, *batches: pa.RecordBatch, **more: bool) -> TaskMark:
        return write_rows_once(self.options, self.plan(batch_id, task, **more), batches)

    def finish(self, batch_id: int, tasks: int) -> None:
        finish(self.options, [TaskReport(task, 0, self.sink, batch_id) for task in range(tasks)])

    def run(self, batch_id: int, split: Sequence[Sequence[str]], **more: bool) -> None:
        for task, texts in enumerate(split):
            self.task(batch_id, task, batch(*texts), **more)
        self.finish(batch_id, len(split))


@pytest.fixture
def stream(servers: str, make_topic: MakeTopic) -> Callable[..., Stream]:
    def make(**options: str) -> Stream:
        topic = make_topic(partitions=2)
        return Stream(servers, topic, f"query-{topic}", **options)

    return make


def test_batches_come_one_after_another_with_any_number_of_tasks(servers: str, stream: Callable[..., Stream]) -> None:
    query = stream()
    query.run(0, [["a", "b"], []])
    query.run(1, [[], ["c"], ["d"], []])
    query.run(2, [["e"]])
    query.run(3, [["f"], [], ["g"]])
    assert values(servers, query.sink.sink) == list("abcdefg")


def test_a_batch_that_runs_again_is_recognised_by_its_rows(servers: str, stream: Callable[..., Stream]) -> None:
    query = stream()
    query.run(0, [["a", "b"], ["c"]])
    query.run(0, [["b", "a"], ["c"]])
    with pytest.raises(QuireError, match=r"with other rows: 2 rows with hash \w{16} then, 2 with \w{16} now"):
        query.task(0, 0, batch("a", "c"))
    assert values(servers, query.sink.sink, committed=False) == list("abc")


def test_a_mark_of_this_batch_beyond_the_last_task_fails_it(servers: str, stream: Callable[..., Stream]) -> None:
    """Task 2 has written its rows when Spark dies; then the batch is repeated as one task."""
    query = stream()
    query.task(0, 2, batch("c"))
    query.task(0, 0, batch("a", "b", "c"))
    for _ in range(2):
        with pytest.raises(QuireError, match=r"task 2 of sink .* has written 1 rows of batch 0, which now has 1 tasks"):
            query.finish(0, 1)


def test_a_task_that_died_with_its_transaction_open_blocks_no_other(
    servers: str, client: BlockingClient, stream: Callable[..., Stream]
) -> None:
    query = stream()
    topic = query.sink.sink
    marks = TopicPartition(MARKER_TOPIC.default, 0)
    stream().run(0, [["x"]])  # creates the topic of the marks
    for task in range(2):
        dead = Producer(client.cluster, ProducerConfig(transactional_id=query.sink.task(task)))
        client.run(dead.init_transactions())
        client.run(dead.prepare(topic))
        dead.begin()
        dead.send(topic, b"left behind")
        client.loop.run_until(dead.flush())
        mark = TaskMark(0, 1, 1).to_offset()
        client.run(dead.send_offsets(query.sink.task(task), {marks: mark}))
    began = time.monotonic()
    query.run(0, [["a"]])
    assert time.monotonic() - began < 50, "not until the transactions time out"
    assert values(servers, topic) == ["a"]
    described = client.run(describe_transactions(client.cluster, [query.sink.task(1)]))[query.sink.task(1)]
    assert not isinstance(described, ApiError)
    assert not described.under_way, "the driver has ended that of a task the batch no longer has"


def test_an_attempt_that_was_overtaken_can_write_nothing_more(servers: str, stream: Callable[..., Stream]) -> None:
    query = stream()

    def overtaken() -> Iterator[pa.RecordBatch]:
        yield batch("a")
        query.task(0, 0, batch("a", "b"))
        yield batch("b")

    with pytest.raises(QuireError, match=r"task 0 of batch 0 of sink .* could not be written") as failed:
        write_rows_once(query.options, query.plan(0, 0), overtaken())
    cause = failed.value.__cause__
    assert isinstance(cause, ApiError)
    assert cause.code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
    assert values(servers, query.sink.sink) == ["a", "b"]


def test_a_task_whose_input_fails_aborts_its_writes(servers: str, stream: Callable[..., Stream]) -> None:
    query = stream(kafka_batch_size="100")

    def failing() -> Iterator[pa.RecordBatch]:
        yield batch(*(f"{number:050}" for number in range(50)))
        raise RuntimeError("upstream")

    with pytest.raises(RuntimeError, match="upstream"):
        write_rows_once(query.options, query.plan(0, 0), failing())
    assert values(servers, query.sink.sink) == []
    query.run(0, [["a"]])
    assert values(servers, query.sink.sink) == ["a"]


def test_a_task_that_comes_near_the_time_limit_of_its_transaction_fails(
    servers: str, stream: Callable[..., Stream]
) -> None:
    query = stream(kafka_transaction_timeout_ms="1000")

    def slow() -> Iterator[pa.RecordBatch]:
        yield batch("a")
        time.sleep(0.85)  # the test is about the time that passes
        yield batch("b")

    with pytest.raises(QuireError, match=r"and after 1 s the cluster ends it: raise kafka\.transaction\.timeout\.ms"):
        write_rows_once(query.options, query.plan(0, 0), slow())
    assert values(servers, query.sink.sink) == []


def test_a_task_may_wait_for_its_first_row_as_long_as_it_likes(servers: str, stream: Callable[..., Stream]) -> None:
    query = stream(kafka_transaction_timeout_ms="4000")

    def late() -> Iterator[pa.RecordBatch]:
        time.sleep(4.1)  # the transaction is not open yet
        yield batch("a")

    write_rows_once(query.options, query.plan(0, 0), late())
    assert values(servers, query.sink.sink) == ["a"]


def test_missing_marks_are_an_error_unless_the_user_allows_it(
    servers: str, client: BlockingClient, stream: Callable[..., Stream]
) -> None:
    query = stream()
    query.run(0, [["a"], []])
    query.run(1, [["b"], []])
    listed, _ = client.run(list_groups(client.cluster))
    marks = [group.group_id for group in listed if query.sink.query_id in group.group_id]
    assert sorted(marks) == [query.sink.batches, query.sink.task(0), query.sink.task(1)]
    client.run(delete_groups(client.cluster, [query.sink.task(1)]))
    query.task(2, 0, batch("c"))
    with pytest.raises(QuireError, match=r"task 1 of batch 2 of sink .* does not find its mark of the previous batch"):
        query.task(2, 1, batch("d"))
    client.run(delete_groups(client.cluster, marks))
    with pytest.raises(QuireError, match=r"task 1 of batch 2 .* does not find its mark"):
        query.task(2, 1, batch("d"))
    assert values(servers, query.sink.sink) == list("abc")
    query.run(2, [["c"], ["d"]], allow_missing_marker=True)
    query.run(3, [["e"], ["f"]])
    assert values(servers, query.sink.sink) == list("abccdef"), "who says so gets twice what was written before"


def test_rows_with_topics_of_their_own_are_written_once_too(servers: str, make_topic: MakeTopic) -> None:
    first, second = make_topic(), make_topic()
    query = Stream(servers, None, "query-topics")
    rows = batch("a", "b", "c", topic=[first, second, first])
    for _ in range(2):
        query.task(0, 0, rows)
        query.finish(0, 1)
    assert values(servers, first) == ["a", "c"]
    assert values(servers, second) == ["b"]


def test_no_tool_shows_lag_for_the_marks_and_their_names_say_what_they_are(
    servers: str, stream: Callable[..., Stream]
) -> None:
    """The lag as kafka-consumer-groups and lag exporters compute it: the end of each partition minus the committed
    offset."""
    query = stream()
    for batch_id in range(3):
        query.run(batch_id, [["a", "b"], ["c"]])
    admin = AdminClient({"bootstrap.servers": servers})
    listed = admin.list_consumer_groups().result()
    marks = [group.group_id for group in listed.valid if query.sink.query_id in group.group_id]
    assert len(marks) == 3
    for group in marks:
        assert group.startswith(f"spark-sink-mark-{query.sink.sink}-")
        found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result()
        ends = admin.list_offsets({at: OffsetSpec.latest() for at in found.topic_partitions})
        assert {(at.topic, at.offset, ends[at].result().offset) for at in found.topic_partitions} == {
            ("spark-sink-marks", 0, 0)
        }


def test_a_topic_with_records_is_refused_for_marks_because_they_would_look_like_lag(
    servers: str, make_topic: MakeTopic, stream: Callable[..., Stream]
) -> None:
    other = Stream(servers, make_topic(partitions=1), "other")
    other.run(0, [["a"]])
    query = stream(markerTopic=other.sink.sink)
    with pytest.raises(QuireError, match=r"look like consumer groups with lag: leave option markerTopic out"):
        query.task(0, 0, batch("b"))


def test_the_topic_of_the_marks_is_created_where_writing_creates_no_topics() -> None:
    with Cluster(config={"auto.create.topics.enable": False}) as cluster:
        cluster.create_topic("out")
        query = Stream(cluster.bootstrap_servers, "out", "query")
        query.run(0, [["a"]])
        assert values(cluster.bootstrap_servers, "out") == ["a"]


def test_rows_with_topics_of_their_own_need_a_name_for_the_sink_in_foreach_batch(
    servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise two such writes in one batch would count as one."""
    monkeypatch.setattr("pyspark_quire.batch_writer.current_stream_task", lambda: StreamTask("query", 0, 0))
    schema = StructType([StructField("value", StringType()), StructField("topic", StringType())])
    writer = BatchWriter(Options({"kafka.bootstrap.servers": servers}, Use.BATCH_WRITE), schema, overwrite=False)
    with pytest.raises(QuireError, match="only if option sink gives this write a name"):
        writer.write(iter([batch("a", topic=["t"])]))


def test_two_queries_with_one_checkpoint_are_detected(stream: Callable[..., Stream]) -> None:
    query = stream()
    for batch_id in range(3):
        query.run(batch_id, [[str(batch_id)]])
    with pytest.raises(QuireError, match=r"task 0 of batch 1 .* is older than batch 2, which is already written"):
        query.task(1, 0, batch("1"))
    with pytest.raises(QuireError, match=r"batch 1 of sink .* ran with 1 tasks, but batch 2 was finished before by 1"):
        query.finish(1, 1)


def test_many_partitions_do_not_need_much_memory_at_once(servers: str, make_topic: MakeTopic) -> None:
    """Batches are sent before they are full if all open ones together approach the limit."""
    topic = make_topic(partitions=40)
    options = Options(
        {"kafka.bootstrap.servers": servers, "topic": topic, "kafka.buffer.memory": "100000"}, Use.BATCH_WRITE
    )
    texts = [f"{number:0100}" for number in range(5000)]
    rows = [batch(*texts[start : start + 500], key=texts[start : start + 500]) for start in range(0, 5000, 500)]
    assert write_rows(options, rows) == 5000
    assert values(servers, topic) == texts


def test_a_node_killed_again_and_again_costs_time_and_no_rows(fresh_quire_cluster: Cluster) -> None:
    cluster = fresh_quire_cluster
    query = Stream(cluster.bootstrap_servers, "out", "query")
    over = threading.Event()
    chance = random.Random()
    kills = 0

    def kill() -> None:
        nonlocal kills
        while not over.wait(chance.uniform(0.05, 1)):
            cluster.kill()
            cluster.restart()
            kills += 1

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        batch_id = 0
        while kills < 4:
            query.run(batch_id, [[f"{batch_id} {task} {row}" for row in range(50)] for task in range(2)])
            batch_id += 1
    finally:
        over.set()
        killer.join()
    found = values(cluster.bootstrap_servers, "out")
    assert len(found) == len(set(found)) == batch_id * 100


def test_without_a_query_and_a_batch_to_belong_to_a_stream_is_not_written(servers: str) -> None:
    options = Options({"kafka.bootstrap.servers": servers, "topic": "never"}, Use.STREAM_WRITE)
    writer = StreamWriter(options, StructType([StructField("value", StringType())]))
    with pytest.raises(QuireError, match="this version of Spark does not set"):
        writer.write(iter([batch("a")]))


def test_a_batch_that_some_task_did_not_report_is_not_finished(stream: Callable[..., Stream]) -> None:
    query = stream()
    query.task(0, 0, batch("a"))
    report = TaskReport(0, 1, query.sink, 0)
    with pytest.raises(QuireError, match=r"only 1 of 2 tasks of batch 0 of sink .* were written"):
        finish(query.options, [report, None])

"""The shop's pipeline in a test, on real topics and a real Spark: it reads the existing records, then stops."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from quire.client.admin.topics import NewTopic, create_topics
from quire.client.consumer import BEGINNING, Consumer, ConsumerConfig
from quire.client.offsets import LATEST, TopicPartition, list_offsets
from quire.client.producer import Producer
from quire.client.shell_blocking import BlockingClient
from quire.protocol.records import Record
from quire.spark.pipeline_file import load_pipeline
from quire.spark.progress import QueryReport, Tally
from quire.spark.runner import Listener, PipelineRun
from quire.spark.state_folder import StateFolder
from quire_samples.shop.events import ShopEvent

ROOT = Path(__file__).resolve().parents[3]


class Shop:
    """Its topics on a cluster, and its state in a folder."""

    def __init__(self, spark: SparkSession, servers: str, state: Path) -> None:
        self.folder = StateFolder(str(state), load_pipeline(str(ROOT / "pipelines" / "shop" / "shop.yaml")))
        self.reports: dict[str, QueryReport] = {}
        self._spark = spark
        self._servers = servers
        wanted = [NewTopic(topic.name, topic.partitions) for topic in self.folder.pipeline.topics]
        with BlockingClient(servers) as client:
            client.run(create_topics(client.cluster, wanted))

    def send(self, events: Iterable[ShopEvent]) -> None:
        with BlockingClient(self._servers) as client:
            producer = Producer(client.cluster)
            for topic in self.folder.pipeline.topics:
                client.run(producer.prepare(topic.name))
            for event in events:
                producer.send(event.topic, event.value, key=event.key)
            client.loop.run_until(producer.flush())
            assert producer.first_error is None

    def run(self) -> dict[str, Tally]:
        """Processes everything that exists, query by query; returns the tallies of all runs together."""
        self.folder.hold()
        listener = Listener()
        self._spark.streams.addListener(listener)
        run = PipelineRun(self._spark, listener, self.folder, self._servers, available_now=True)
        try:
            run.start_queries()
        finally:
            run.stop()
            self._spark.streams.removeListener(listener)
            self.folder.release()
        self.reports = {query.spec.name: query.report for query in run.queries if query.report is not None}
        return {query.spec.name: query.tally for query in run.queries}

    def records(self, *topics: str) -> list[Record]:
        """All committed records on these topics."""
        found = []
        with BlockingClient(self._servers) as client:
            client.run(client.cluster.refresh(list(topics)))
            partitions = {topic: client.cluster.metadata.topics[topic].partitions for topic in topics}
            topic_partitions = [TopicPartition(topic, number) for topic in topics for number in partitions[topic]]
            ends = client.run(list_offsets(client.cluster, dict.fromkeys(topic_partitions, LATEST), isolation_level=1))
            consumer = Consumer(client.cluster, ConsumerConfig(read_committed=True))
            client.run(consumer.assign(dict.fromkeys(topic_partitions, BEGINNING)))
            while any(offset < ends[topic_partition].offset for topic_partition, offset in consumer.positions.items()):
                client.loop.run_until(consumer.arrival())
                for fetched in consumer.poll():
                    found += list(fetched.records())
        return found

    def results(self, topic: str) -> list[dict[str, Any]]:
        return [json.loads(record.value or b"") for record in self.records(topic)]

    def lake(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = DeltaTable(f"{self.folder.root}/lake/shop/events").to_pyarrow_table().to_pylist()
        return rows


def fields(events: Sequence[ShopEvent]) -> list[dict[str, Any]]:
    """The contents of events that are not broken, with their kind as in clean events."""
    return [json.loads(event.value or b"") | {"kind": event.topic} for event in events]

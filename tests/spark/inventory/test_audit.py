"""The archive in the lake: every event once, nothing of aborted transactions, and missing events are found."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pipelines.inventory.audit import archive, archive_refusals, find_gaps
from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_blocking import BlockingClient
from quire.spark.delta import DeltaSink
from quire_samples.inventory.processor import ProcessorConfig
from tests.samples.command import samples
from tests.samples.inventory.running import carry_out, events_in, expected, made_commands, own_config, send


class Lake:
    """An archive below a folder of its own."""

    def __init__(self, spark: SparkSession, servers: str, config: ProcessorConfig, folder: Path) -> None:
        self._spark = spark
        self._servers = servers
        self._config = config
        self._folder = folder
        self.events = str(folder / "events")
        self.refusals = str(folder / "refusals")

    def catch_up(self) -> None:
        """Runs both jobs like a pipeline, up to the current end."""
        topics = self._config.topics
        self._run(archive(self._read(topics.events)), self.events)
        self._run(archive_refusals(self._read(topics.refusals)), self.refusals)

    def _read(self, topic: str) -> DataFrame:
        return (
            self._spark.readStream.format("quire")
            .option("kafka.bootstrap.servers", self._servers)
            .option("kafka.isolation.level", "read_committed")
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
        )

    def _run(self, rows: DataFrame, table: str) -> None:
        query = (
            rows.writeStream.foreachBatch(DeltaSink(table, partition_by=["date"]))
            .option("checkpointLocation", f"{table}-checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


@pytest.fixture(scope="module")
def inventory(client: BlockingClient) -> ProcessorConfig:
    config = own_config()
    send(client, config.topics, made_commands(300))
    carry_out(client, config, 300)
    leave_an_aborted_transaction(client, config)
    return config


@pytest.fixture(scope="module")
def lake(
    spark: SparkSession, servers: str, inventory: ProcessorConfig, tmp_path_factory: pytest.TempPathFactory
) -> Lake:
    found = Lake(spark, servers, inventory, tmp_path_factory.mktemp("lake"))
    found.catch_up()
    return found


def leave_an_aborted_transaction(client: BlockingClient, config: ProcessorConfig) -> None:
    """The state after a processor was killed in the middle of a transaction, and the next one has taken over."""
    producer = Producer(client.cluster, ProducerConfig(transactional_id=f"{config.name}-stranger"))
    client.run(producer.init_transactions())
    for topic in (config.topics.events, config.topics.refusals):
        client.run(producer.prepare(topic))
    producer.begin()
    producer.send(config.topics.events, b'{"never": "committed"}', key=b"item-0001")
    producer.send(config.topics.refusals, b'{"never": "committed"}', key=b"x")
    client.loop.run_until(producer.flush())
    client.run(producer.abort())


def check(lake: Lake, config: ProcessorConfig, servers: str, *options: str) -> tuple[int, dict[str, object]]:
    arguments = ("--events", config.topics.events, "--lake", lake.events, "--json", *options)
    result = samples("inventory", "check", *arguments, servers=servers)
    return result.returncode, json.loads(result.stdout)


def test_view_history_and_lake_agree_while_the_inventory_runs(
    lake: Lake, client: BlockingClient, inventory: ProcessorConfig, servers: str
) -> None:
    code, report = check(lake, inventory, servers)
    assert (code, report["agrees"], report["events_not_in_lake"]) == (0, True, 0), report
    send(client, inventory.topics, made_commands(200, seed=2))
    added = carry_out(client, inventory, 200).tally.events
    code, report = check(lake, inventory, servers)
    assert (code, report["agrees"], report["events_not_in_lake"]) == (0, True, added), report
    assert check(lake, inventory, servers, "--wait", "0")[0] == 1, "a wait for the lake reports that it is late"
    lake.catch_up()
    code, report = check(lake, inventory, servers)
    assert (code, report["agrees"], report["events_not_in_lake"]) == (0, True, 0), report


def test_the_lake_has_every_event_and_every_refusal_once(
    lake: Lake, client: BlockingClient, inventory: ProcessorConfig
) -> None:
    lake.catch_up()
    rows = DeltaTable(lake.events).to_pyarrow_table().to_pylist()
    told = sorted((row["item"], row["sequence"], row["change"], row["level"], row["command"]) for row in rows)
    events = events_in(client, inventory.topics)
    assert told == sorted((each.item, each.sequence, each.change, each.level, each.command) for each in events)
    refusals = DeltaTable(lake.refusals).to_pyarrow_table().to_pylist()
    _, _, refused = expected(client, inventory.topics)
    assert sorted((row["source_offset"], row["reason"]) for row in refusals) == sorted(
        (refusal.source.offset, refusal.reason.value) for refusal in refused
    )


def test_a_row_taken_out_of_the_lake_is_missed_by_the_job_and_by_the_check(
    lake: Lake, spark: SparkSession, inventory: ProcessorConfig, servers: str
) -> None:
    table = DeltaTable(lake.events)
    table.delete("item = 'item-0003' AND sequence IN (2, 3)")
    rows = spark.createDataFrame(DeltaTable(lake.events).to_pandas()[["item", "sequence"]])
    assert [tuple(row) for row in find_gaps(rows).collect()] == [("item-0003", 2, 3)]
    code, report = check(lake, inventory, servers)
    assert code == 1
    assert "2 of events 1 to" in json.dumps(report["differences"])
    table.restore(table.version() - 1)
    assert check(lake, inventory, servers)[0] == 0


def test_something_that_no_processor_wrote_stops_the_archive_and_is_named(
    spark: SparkSession, servers: str, client: BlockingClient, tmp_path: Path
) -> None:
    config = own_config()
    send(client, config.topics, made_commands(20))
    carry_out(client, config, 20)
    producer = Producer(client.cluster)
    client.run(producer.prepare(config.topics.events))
    receipt = producer.send(config.topics.events, b'{"item": "pen"}', key=b"pen", partition=1)
    client.loop.run_until(producer.flush())
    named = (
        f"{config.topics.events}-1 has something at offset {receipt.offset} that no processor wrote: rule is_numbered"
    )
    with pytest.raises(PySparkException, match=named):
        Lake(spark, servers, config, tmp_path).catch_up()

"""Shared by the Spark tests: one Spark for the whole run, a Quire cluster, a topic for each test, and a client to fill
it.

Spark's Java process takes seconds to start, so there is only one, with settings for a small machine. Its Python workers
find this tree through PYTHONPATH, like this process.
"""

import itertools
import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quire.client.admin.topics import NewTopic, create_topics
from quire.client.offsets import EARLIEST, TopicPartition, list_offsets
from quire.client.shell_blocking import BlockingClient
from quire.testing import Cluster

ROOT = Path(__file__).resolve().parents[2]

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.ui.enabled": "false",
}

MakeTopic = Callable[..., str]


def spark_environment() -> dict[str, str]:
    """The environment with which Spark's Python workers use this interpreter and this tree."""
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(filter(None, dict.fromkeys(paths)))}


def new_session() -> SparkSession:
    os.environ.update(spark_environment())
    builder = SparkSession.builder.master("local[2]").appName("quire tests")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = new_session()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def quire_config() -> Mapping[str, str | int | bool]:
    """Records of any age are kept: tests write old ones, which retention would delete on a slow machine."""
    return {"log.retention.ms": -1}


@pytest.fixture(scope="session")
def servers(quire_cluster: Cluster) -> str:
    return quire_cluster.bootstrap_servers


@pytest.fixture(scope="session")
def client(servers: str) -> Iterator[BlockingClient]:
    """Quire's own client, for writes and look-ups without Spark."""
    with BlockingClient(servers) as opened:
        yield opened


@pytest.fixture(scope="session")
def make_topic(client: BlockingClient) -> MakeTopic:
    """make_topic(partitions=1, **config) -> the name of a new topic; dots in config keys are written as underscores."""
    numbers = itertools.count()
    prefix = f"spark-{uuid.uuid4().hex[:8]}"

    def make(partitions: int = 1, name: str | None = None, **config: str) -> str:
        topic = name or f"{prefix}-{next(numbers)}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(topic, partitions=partitions, replication_factor=1, configs=settings)
        for refused in client.run(create_topics(client.cluster, [new])).values():
            if isinstance(refused, Exception):
                raise refused
        # The controller answers a little before the partitions are served; this waits for them.
        topic_partitions = {TopicPartition(topic, partition): EARLIEST for partition in range(partitions)}
        client.run(list_offsets(client.cluster, topic_partitions))
        return topic

    return make

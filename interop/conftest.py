"""Shared by the interop tests: an installation of Apache Kafka and a running Quire."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from interop.apache_kafka import ApacheKafka, jars
from interop.maven import NotAvailableError
from interop.spark_kafka import connector_jars
from quire.testing import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def kafka() -> ApacheKafka:
    try:
        return ApacheKafka(jars())
    except NotAvailableError as error:
        pytest.exit(f"interop needs Java and Maven: {error}", returncode=1)


@pytest.fixture(scope="module")
def quire() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """One Spark for all tests, with its own connector for Kafka."""
    from quire.spark.session import spark_session

    try:
        jars = connector_jars()
    except NotAvailableError as error:
        pytest.exit(f"interop needs Java and Maven: {error}", returncode=1)
    session = spark_session("quire interop", "local[2]", {"spark.jars": jars, "spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()

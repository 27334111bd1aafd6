"""What the interop tests share: an installation of Apache Kafka and a running Quire."""

from collections.abc import Iterator

import pytest

from interop.apache_kafka import ApacheKafka, jars
from interop.maven import NotAvailableError
from quire.testing import Cluster


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

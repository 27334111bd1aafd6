"""What the wire tests share: a node to talk to, topics of their own, and the clients.

The tests hold for any Kafka broker: `QUIRE_WIRE_BOOTSTRAP=host:port pytest tests/wire` runs them against that one, and
Apache Kafka 4.3.1 passes all of them. Without it they start a Quire of their own, one per worker.
"""

import itertools
import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from quire.testing import Cluster, WireConnection
from tests.wire.clients import CLIENTS, OTHER_BROKER, WAIT_S, Client, at_once
from tests.wire.raw import list_offset

MakeTopic = Callable[..., str]


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    if OTHER_BROKER is not None:
        yield OTHER_BROKER
        return
    # Many records here are from long ago, and must not be found to be too old in the middle of a test.
    with Cluster(config={"log.initial.task.delay.ms": 24 * 3600 * 1000}) as cluster:
        yield cluster.bootstrap_servers


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


@pytest.fixture(scope="session")
def make_topic(bootstrap: str, admin: AdminClient) -> MakeTopic:
    """make_topic(partitions=1, **config) -> the name of a new topic; dots in config keys are written as underscores."""
    numbers = itertools.count()
    prefix = f"wire-{uuid.uuid4().hex[:8]}"

    def make(partitions: int = 1, **config: str) -> str:
        name = f"{prefix}-{next(numbers)}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        admin.create_topics([new], operation_timeout=WAIT_S)[name].result(WAIT_S)
        at_once(lambda: _is_led(bootstrap, name, partitions))
        return name

    return make


def _is_led(bootstrap: str, topic: str, partitions: int) -> bool:
    """Whether the broker serves all partitions already; the controller answers a little earlier."""
    with WireConnection(bootstrap) as connection:
        return all(list_offset(connection, topic, -1, partition=n).error_code == 0 for n in range(partitions))


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    chosen: Client = request.param
    return chosen


@pytest.fixture
def connection(bootstrap: str) -> Iterator[WireConnection]:
    with WireConnection(bootstrap) as opened:
        yield opened

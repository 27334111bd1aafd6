"""Shared by the wire tests: a node, a topic for each test, and the clients.

The tests hold for any Kafka broker: `QUIRE_WIRE_BOOTSTRAP=host:port pytest tests/wire` runs them against that one, and
Apache Kafka 4.3.1 passes all of them: `python -m interop.wire_broker` starts one with the settings they need. Without
it they start a Quire node, one for each worker.
"""

import itertools
import uuid
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from quire.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from quire.real.loop_watch import HELD
from quire.testing import Cluster, WireConnection
from tests.wire.broker_settings import SETTINGS
from tests.wire.clients import CLIENTS, OTHER_BROKER, WAIT_S, Client, at_once, eventually
from tests.wire.raw import list_offset
from tests.wire.raw_groups import has_coordinator

pytest.register_assert_rewrite(
    "tests.wire.raw_consumer_groups", "tests.wire.raw_offsets", "tests.wire.raw_transactions"
)

LOOP_WATCH_MS = 50
"""No test may block the node's event loop for longer."""

MakeTopic = Callable[..., str]
NewName = Callable[[], str]


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    if OTHER_BROKER is not None:
        yield OTHER_BROKER
        return
    with Cluster(config={**SETTINGS, "quire.loop.watch.ms": LOOP_WATCH_MS}) as cluster:
        yield cluster.bootstrap_servers
        cluster.kill()  # no need to wait for the flush of a thousand partitions
        assert HELD not in cluster.log(), cluster.log()


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


@pytest.fixture(scope="session")
def coordinators(bootstrap: str) -> None:
    """Both coordinators are available: the first use creates their topics, and waits until they are loaded."""
    nobody = [f"nobody-{number}" for number in range(500)]  # some in every partition
    with WireConnection(bootstrap) as connection:
        for key_type in (0, 1):
            eventually(partial(has_coordinator, connection, key_type=key_type))

        def groups_are_loaded() -> bool:
            answer = connection.call(DescribeGroupsRequest(groups=nobody), 6, DescribeGroupsResponse)
            return {found.error_code for found in answer.groups} == {ErrorCode.GROUP_ID_NOT_FOUND}

        def transactions_are_loaded() -> bool:
            request = DescribeTransactionsRequest(transactional_ids=nobody)
            answer = connection.call(request, 0, DescribeTransactionsResponse)
            return {found.error_code for found in answer.transaction_states} == {ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}

        eventually(groups_are_loaded)
        eventually(transactions_are_loaded)


@pytest.fixture(scope="session")
def new_group(coordinators: None) -> NewName:
    """new_group() -> the id of an unused group."""
    numbers = itertools.count()
    prefix = f"group-{uuid.uuid4().hex[:8]}"
    return lambda: f"{prefix}-{next(numbers)}"


@pytest.fixture(scope="session")
def new_transactional_id(coordinators: None) -> NewName:
    """new_transactional_id() -> an unused one."""
    numbers = itertools.count()
    prefix = f"txn-{uuid.uuid4().hex[:8]}"
    return lambda: f"{prefix}-{next(numbers)}"

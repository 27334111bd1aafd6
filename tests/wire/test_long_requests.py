"""Single requests with as much work as allowed: the node answers, and nothing blocks its event loop for long.

The node watches its own loop (`quire.loop.watch.ms`), so a failure shows what held it.
"""

from collections.abc import Iterator
from functools import partial

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from quire.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from quire.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from quire.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from quire.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from quire.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from quire.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from quire.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from quire.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from quire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from quire.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from quire.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from quire.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from quire.real.loop_watch import HELD
from quire.testing import Cluster, WireConnection
from tests.wire.clients import eventually
from tests.wire.conftest import LOOP_WATCH_MS

PARTITIONS = 9_900
TOPICS = 4_900


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(config={"quire.loop.watch.ms": LOOP_WATCH_MS, "group.initial.rebalance.delay.ms": 0}) as started:
        yield started
        started.kill()  # A clean stop of so many partitions takes a while.


@pytest.fixture(scope="module")
def connection(cluster: Cluster) -> Iterator[WireConnection]:
    with WireConnection(cluster.bootstrap_servers, timeout_s=120) as opened:
        yield opened


@pytest.fixture(scope="module")
def looked_at() -> list[int]:
    """The position up to which the log was checked."""
    return [0]


@pytest.fixture(autouse=True)
def nothing_holds_the_loop(cluster: Cluster, looked_at: list[int]) -> Iterator[None]:
    yield
    log = cluster.log(looked_at[0])
    looked_at[0] = cluster.log_size
    assert HELD not in log, log


@pytest.fixture(scope="module")
def wide(connection: WireConnection) -> str:
    """A topic with many partitions, none of which has been used by a request."""
    return _created(connection, "wide", PARTITIONS)


def _created(connection: WireConnection, name: str, partitions: int) -> str:
    """Creates the partitions in steps: the records of one topic are written together, and ten thousand of them take 0.1
    s."""
    request = CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)])
    (answer,) = connection.call(request, 7, CreateTopicsResponse).topics
    assert answer.error_code == ErrorCode.NONE, answer
    for count in [*range(1_000, partitions, 1_000), partitions]:
        more = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)])
        (added,) = connection.call(more, 3, CreatePartitionsResponse).results
        assert added.error_code == ErrorCode.NONE, added
    return name


def test_list_offsets_of_partitions_whose_logs_are_not_opened_yet(connection: WireConnection, wide: str) -> None:
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(PARTITIONS)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=wide, partitions=wanted)])
    (answer,) = connection.call(request, 7, ListOffsetsResponse).topics
    assert [found.error_code for found in answer.partitions] == [ErrorCode.NONE] * PARTITIONS


def test_fetch_sessions_of_many_partitions(connection: WireConnection) -> None:
    name = _created(connection, "fetched", PARTITIONS)
    wanted = [FetchPartition(partition=index, partition_max_bytes=1) for index in range(PARTITIONS)]
    first = FetchRequest(
        max_wait_ms=0, min_bytes=1, session_epoch=0, topics=[FetchTopic(topic=name, partitions=wanted)]
    )
    opened = connection.call(first, 12, FetchResponse)
    assert sum(len(topic.partitions) for topic in opened.responses) == PARTITIONS
    for epoch in (1, 2):
        again = FetchRequest(max_wait_ms=100, min_bytes=1, session_id=opened.session_id, session_epoch=epoch)
        assert connection.call(again, 12, FetchResponse).responses == []


def test_markers_for_many_partitions(connection: WireConnection, wide: str) -> None:
    topics = [WritableTxnMarkerTopic(name=wide, partition_indexes=list(range(3_900)))]
    request = WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=1_000_000 + number,
                producer_epoch=0,
                transaction_result=True,
                topics=topics,
                coordinator_epoch=0,
            )
            for number in range(10)
        ]
    )
    answer = connection.call(request, 1, WriteTxnMarkersResponse)
    codes = {found.error_code for marker in answer.markers for topic in marker.topics for found in topic.partitions}
    assert codes == {ErrorCode.NONE}


def test_settings_of_many_topics_are_described(connection: WireConnection) -> None:
    made = [CreatableTopic(name=f"small-{n}", num_partitions=1, replication_factor=1) for n in range(TOPICS)]
    created = connection.call(CreateTopicsRequest(topics=made, timeout_ms=60_000), 7, CreateTopicsResponse)
    assert {answer.error_code for answer in created.topics} == {ErrorCode.NONE}
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=2, resource_name=topic.name) for topic in made],
        include_synonyms=False,
    )
    described = connection.call(request, 4, DescribeConfigsResponse)
    assert [answer.resource_name for answer in described.results] == [topic.name for topic in made]
    everything = connection.call(MetadataRequest(topics=None), 12, MetadataResponse)
    assert len(everything.topics) > TOPICS
    changed = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=2,
                resource_name=topic.name,
                configs=[AlterableConfig(name="retention.ms", config_operation=0, value="1000000")],
            )
            for topic in made
        ]
    )
    altered = connection.call(changed, 1, IncrementalAlterConfigsResponse)
    assert {answer.error_code for answer in altered.responses} == {ErrorCode.NONE}
    deleted = connection.call(
        DeleteTopicsRequest(topic_names=[topic.name for topic in made], timeout_ms=60_000), 5, DeleteTopicsResponse
    )
    assert {answer.error_code for answer in deleted.responses} == {ErrorCode.NONE}


def test_many_topics_are_validated(connection: WireConnection) -> None:
    topics = [CreatableTopic(name=f"v-{n}", num_partitions=1, replication_factor=1) for n in range(TOPICS)]
    answer = connection.call(CreateTopicsRequest(topics=topics, validate_only=True), 7, CreateTopicsResponse)
    assert {found.error_code for found in answer.topics} == {ErrorCode.NONE}


def test_coordinators_of_many_groups(connection: WireConnection) -> None:
    keys = [f"group-{number}" for number in range(39_000)]
    answer = connection.call(FindCoordinatorRequest(key_type=0, coordinator_keys=keys), 4, FindCoordinatorResponse)
    assert [found.key for found in answer.coordinators] == keys


def test_a_group_named_many_times_is_answered_once(connection: WireConnection) -> None:
    many = 15_000
    partitions = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata="x" * 20)
        for index in range(PARTITIONS)
    ]
    commit = OffsetCommitRequest(group_id="many", topics=[OffsetCommitRequestTopic(name="wide", partitions=partitions)])
    committed = connection.call(commit, 8, OffsetCommitResponse)
    assert {found.error_code for topic in committed.topics for found in topic.partitions} == {ErrorCode.NONE}
    groups = [OffsetFetchRequestGroup(group_id="many", topics=None)] * many
    fetched = connection.call(OffsetFetchRequest(groups=groups), 8, OffsetFetchResponse)
    assert [group.group_id for group in fetched.groups] == ["many"]
    described = connection.call(DescribeGroupsRequest(groups=["many"] * many), 5, DescribeGroupsResponse)
    assert len(described.groups) == 1
    newer = connection.call(ConsumerGroupDescribeRequest(group_ids=["many"] * many), 1, ConsumerGroupDescribeResponse)
    assert len(newer.groups) == 1
    ids = DescribeTransactionsRequest(transactional_ids=["many"] * many)
    assert len(connection.call(ids, 0, DescribeTransactionsResponse).transaction_states) == 1
    producers = DescribeProducersRequest(topics=[TopicRequest(name="wide", partition_indexes=[0] * many)])
    assert len(connection.call(producers, 0, DescribeProducersResponse).topics[0].partitions) == 1


def test_everything_on_the_disks_is_described(connection: WireConnection, wide: str) -> None:
    answer = connection.call(DescribeLogDirsRequest(topics=None), 4, DescribeLogDirsResponse)
    assert sum(len(topic.partitions) for result in answer.results for topic in result.topics) >= PARTITIONS


def test_records_of_many_partitions_are_deleted(connection: WireConnection, wide: str) -> None:
    wanted = [DeleteRecordsPartition(partition_index=index, offset=-1) for index in range(PARTITIONS)]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=wide, partitions=wanted)], timeout_ms=60_000)
    (answer,) = connection.call(request, 2, DeleteRecordsResponse).topics
    assert {found.error_code for found in answer.partitions} == {ErrorCode.NONE}


def test_long_transactional_ids_are_listed_by_a_pattern(connection: WireConnection) -> None:
    keys = [f"{number:03}" + "ab" * 14_000 for number in range(100)]
    eventually(lambda: _finds_coordinator(connection, "any"))
    for key in keys:
        request = InitProducerIdRequest(transactional_id=key, transaction_timeout_ms=60_000, producer_id=-1)
        eventually(partial(_initializes, connection, request))
    listed = ListTransactionsRequest(transactional_id_pattern="[0-9]*(a|b)*")
    found = connection.call(listed, 2, ListTransactionsResponse).transaction_states
    assert sorted(state.transactional_id for state in found) == keys


def _initializes(connection: WireConnection, request: InitProducerIdRequest) -> bool:
    return connection.call(request, 2, InitProducerIdResponse).error_code == ErrorCode.NONE


def _finds_coordinator(connection: WireConnection, transactional_id: str) -> bool:
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
    (found,) = connection.call(request, 4, FindCoordinatorResponse).coordinators
    return found.error_code == ErrorCode.NONE

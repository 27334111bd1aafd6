"""DeleteRecords: deleted records stay deleted, and the response is sent when that is certain."""

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from quire.protocol.messages.produce import ProduceResponse
from simulator.random import SimRandom
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import produce_request


def node_with_records(count: int) -> SimulatedNode:
    node = SimulatedNode().start()
    node.create_topic("t")
    for _ in range(count):
        node.call(produce_request("t"), 9, ProduceResponse)
    return node


def delete_before(node: SimulatedNode, *offsets: int) -> list[DeleteRecordsPartitionResult]:
    wanted = [DeleteRecordsPartition(partition_index=0, offset=offset) for offset in offsets]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=wanted)], timeout_ms=1000)
    return node.call(request, 2, DeleteRecordsResponse).topics[0].partitions


def test_deleted_records_stay_deleted_after_a_power_loss() -> None:
    node = node_with_records(3)
    (answer,) = delete_before(node, 2)
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.NONE, 2)
    restarted = SimulatedNode(node.disk.crash(SimRandom(1)), seed=2).start()
    assert restarted.node.partitions.leader("t", None, 0).partition.log_start_offset >= 2


def test_the_start_is_answered_where_it_is_already_and_refused_past_the_end() -> None:
    node = node_with_records(3)
    answers = delete_before(node, -1, 1, 4)
    assert [answer.low_watermark for answer in answers] == [3, 3, -1]
    assert [answer.error_code for answer in answers] == [0, 0, ErrorCode.OFFSET_OUT_OF_RANGE]
    assert delete_before(node, 2)[0].low_watermark == 3


def test_a_failing_disk_is_reported_at_the_latest_when_the_request_times_out() -> None:
    node = node_with_records(3)
    node.disk.fail_when(lambda operation: operation.path.startswith("/data/log-start-offset"))
    (answer,) = delete_before(node, 2)
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert answer.low_watermark == -1


def test_records_of_a_topic_that_may_not_be_deleted_from_are_kept() -> None:
    node = node_with_records(3)
    deny(node, (AclOperation.DELETE, "t"))
    (answer,) = delete_before(node, 2)
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1)
    assert node.node.partitions.leader("t", None, 0).partition.log_start_offset == 0

"""TxnOffsetCommit: offsets that become valid with the transaction. See also `test_transactional_offsets_on_a_node`."""

import pytest

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tests.node.api.denying import deny
from tests.node.api.offset_requests import GROUP, fetch, offsets
from tests.node.conftest import SimulatedNode
from tests.node.transactional_producer import TransactionalProducer


@pytest.fixture
def producer(coordinator: SimulatedNode) -> TransactionalProducer:
    coordinator.create_topic("u")
    return TransactionalProducer(coordinator).start()


def commit(producer: TransactionalProducer, *topics: str, version: int = 5) -> dict[str, int]:
    partitions = [TxnOffsetCommitRequestPartition(committed_offset=5, committed_metadata="")]
    request = TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id=GROUP,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=partitions) for topic in topics],
    )
    answer = producer.node.call(request, version, TxnOffsetCommitResponse)
    return {topic.name: topic.partitions[0].error_code for topic in answer.topics}


def test_version_5_adds_the_groups_partition_by_itself(producer: TransactionalProducer) -> None:
    assert commit(producer, "t") == {"t": ErrorCode.NONE}
    assert offsets(fetch(producer.node)) == {}
    assert producer.end(commit=True) == ErrorCode.NONE
    producer.node.clock.run_for(1000)
    assert offsets(fetch(producer.node)) == {"t": (5, ErrorCode.NONE)}


@pytest.mark.parametrize(("version", "code"), [(3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)])
def test_older_versions_need_the_partition_to_be_added_first(
    producer: TransactionalProducer, version: int, code: ErrorCode
) -> None:
    assert commit(producer, "t", version=version) == {"t": code}


@pytest.mark.parametrize("portion", [1, 1000])
def test_a_topic_that_may_not_be_read_is_refused_by_itself(
    producer: TransactionalProducer, monkeypatch: pytest.MonkeyPatch, portion: int
) -> None:
    monkeypatch.setattr("quire.node.offset_portions.PORTION", portion)
    deny(producer.node, (AclOperation.READ, "u"))
    assert commit(producer, "t", "u") == {"t": ErrorCode.NONE, "u": ErrorCode.TOPIC_AUTHORIZATION_FAILED}


@pytest.mark.parametrize(
    ("operation", "name", "code"),
    [
        (AclOperation.READ, GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (AclOperation.WRITE, "mover", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_both_the_group_and_the_transactional_id_must_be_allowed(
    producer: TransactionalProducer, operation: AclOperation, name: str, code: ErrorCode
) -> None:
    deny(producer.node, (operation, name))
    assert commit(producer, "t") == {"t": code}

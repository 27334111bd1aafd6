"""EndTxn: the tables are complete, and the checks before them."""

import pytest

from quire.coordinators.transaction.end_txn import PROTOCOL_1, PROTOCOL_2, EndTxnAction
from quire.coordinators.transaction.transaction_state import AT_REST, TransactionState
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.end_txn import EndTxnRequest
from tests.coordinators.transaction.sim_cluster import SimCluster, SimProducer

JUDGED = [*sorted(AT_REST), TransactionState.ONGOING]
BOTH = (True, False)


def open_transaction(transaction_version: int = 2, protocol: int = 2) -> tuple[SimCluster, SimProducer]:
    cluster = SimCluster(transaction_version)
    producer = SimProducer(cluster, "P", "orders", protocol)
    producer.init()
    if protocol == 1:
        producer.add(("t", 0))
    producer.produce(("t", 0))
    return cluster, producer


def request(producer: SimProducer, epoch: int, *, commit: bool = True, producer_id: int = 1000) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=producer.transactional_id, producer_id=producer_id, producer_epoch=epoch, committed=commit
    )


def test_there_is_an_outcome_for_everything_that_may_be_asked() -> None:
    assert set(PROTOCOL_1) == {(state, commit) for state in JUDGED for commit in BOTH}
    assert set(PROTOCOL_2) == {(state, commit, again) for state in JUDGED for commit in BOTH for again in BOTH}


def test_a_retry_never_ends_a_transaction() -> None:
    for (_, _, again), action in PROTOCOL_2.items():
        assert not (again and action is EndTxnAction.END)


def test_only_an_open_transaction_is_committed() -> None:
    for (state, commit), action in PROTOCOL_1.items():
        assert (action is EndTxnAction.END) == (state is TransactionState.ONGOING), commit
    for (state, commit, _), action in PROTOCOL_2.items():
        if commit and action is EndTxnAction.END:
            assert state is TransactionState.ONGOING


@pytest.mark.parametrize(
    ("api_version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)]
)
def test_a_fenced_producer_gets_the_error_of_its_version(api_version: int, code: ErrorCode) -> None:
    _, producer = open_transaction()
    assert producer.send_end(request(producer, 7), api_version).value[0] is code


def test_a_request_without_a_transactional_id_is_invalid() -> None:
    cluster = SimCluster()
    producer = SimProducer(cluster, "P", "")
    assert producer.end(commit=True).value[0] is ErrorCode.INVALID_REQUEST


def test_protocol_2_in_a_cluster_that_does_not_speak_it_leaves_the_epoch_as_it_is() -> None:
    cluster, producer = open_transaction(transaction_version=0, protocol=1)
    assert producer.send_end(request(producer, 0), 5).value == (ErrorCode.NONE, 1000, 0)
    assert "t-0: COMMIT 1000:0" in cluster.story
    assert producer.send_end(request(producer, 0), 5).value == (ErrorCode.NONE, 1000, 0)


def test_a_producer_of_protocol_1_keeps_its_epoch_in_a_cluster_that_speaks_both() -> None:
    cluster, producer = open_transaction(protocol=1)
    assert producer.end(commit=True).value[0] is ErrorCode.NONE
    assert "t-0: COMMIT 1000:0" in cluster.story
    producer.add(("t", 1))
    assert producer.produce(("t", 1)).value is ErrorCode.NONE


def test_while_a_transaction_is_being_ended_every_producer_must_retry() -> None:
    cluster, producer = open_transaction()
    cluster.channel.holding = True
    producer.end(commit=True)
    for epoch in (0, 1, 5):
        for commit in BOTH:
            again = producer.send_end(request(producer, epoch, commit=commit)).value
            assert again[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    assert producer.send_end(request(producer, 0, producer_id=5)).value[0] is ErrorCode.CONCURRENT_TRANSACTIONS


def test_in_protocol_1_only_the_producer_itself_must_retry() -> None:
    cluster, producer = open_transaction(protocol=1)
    cluster.channel.holding = True
    producer.end(commit=True)
    assert producer.send_end(request(producer, 0)).value[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    assert producer.send_end(request(producer, 1)).value[0] is ErrorCode.PRODUCER_FENCED
    assert producer.send_end(request(producer, 0, producer_id=5)).value[0] is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_the_last_epoch_of_another_producer_id_is_not_a_retry() -> None:
    cluster = SimCluster()
    producer = SimProducer(cluster, "P", "orders")
    producer.init()
    producer.end(commit=False)
    assert producer.send_end(request(producer, 32766, commit=False)).value[0] is ErrorCode.PRODUCER_FENCED


def test_an_unassigned_epoch_ends_nothing() -> None:
    cluster = SimCluster(0)
    cluster.given("orders", 7, 32765)
    producer = SimProducer(cluster, "P", "orders", 1)
    producer.init()
    producer.add(("t", 0))
    cluster.clock.run_for(80_000)
    cluster.image.features["transaction.version"] = 2
    for epoch in (32766, 32767):
        answer = producer.send_end(request(producer, epoch, commit=False, producer_id=7), 5).value
        assert answer[0] is ErrorCode.PRODUCER_FENCED


def test_without_a_next_producer_id_the_last_epoch_is_not_ended() -> None:
    cluster = SimCluster()
    cluster.given("orders", 7, 32765)
    producer = SimProducer(cluster, "P", "orders")
    producer.init()
    producer.produce(("t", 0))
    cluster.has_producer_ids = False
    assert producer.end(commit=True).value[0] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    cluster.has_producer_ids = True
    assert producer.end(commit=True).value == (ErrorCode.NONE, 1000, 0)

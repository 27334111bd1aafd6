import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from simulator.clients.client import SimClient
from simulator.clients.transaction_requests import Fenced, Ongoing, TransactionRequests, errors_of_added
from simulator.main import Kind
from simulator.transaction_ledger import Init, Session, TransactionalIdBook, TransactionBook
from simulator.world import World
from tests.simulator.expected_violation import expect

NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NOT_ATTEMPTED = ErrorCode.OPERATION_NOT_ATTEMPTED


@pytest.mark.parametrize(
    ("codes", "errors"),
    [
        ([NONE, NONE], [NONE, NONE]),
        ([NOT_ATTEMPTED, UNKNOWN], [UNKNOWN]),
        ([NOT_ATTEMPTED, NOT_ATTEMPTED], [NOT_ATTEMPTED, NOT_ATTEMPTED]),
    ],
)
def test_a_partition_that_is_not_added_because_of_another_is_no_error_of_its_own(
    codes: list[ErrorCode], errors: list[ErrorCode]
) -> None:
    """A coordinator whose image lags does not know a new partition: the client retries. Without a cause it fails."""
    results = [
        AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
        for index, code in enumerate(codes)
    ]
    topic = AddPartitionsToTxnTopicResult(name="orders", results_by_partition=results)
    assert errors_of_added(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[topic])) == errors


def test_a_leader_that_was_deposed_may_ask_a_coordinator_that_was_and_the_producer_begins_again() -> None:
    client = SimClient(World(1, Kind(clusters=True).plan(1), cast=lambda _: []).scene, "producer")
    init = Init(asked_tick=1, settled_tick=2)
    session = Session(TransactionalIdBook("id"), client.name, "producer#1", 1, 8, init)
    ongoing = Ongoing(TransactionBook("producer#1/1", session, began_tick=3), 2, 0, 60_000.0, 0.0, 0)
    requests = TransactionRequests(client)
    with pytest.raises(Fenced):
        requests._judged(ongoing, ErrorCode.INVALID_PRODUCER_EPOCH, "a batch", lags=True)
    with expect("errors have a cause"):
        requests._judged(ongoing, ErrorCode.INVALID_PRODUCER_EPOCH, "a batch")

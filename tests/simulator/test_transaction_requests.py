import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from simulator.clients.transaction_requests import errors_of_added

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

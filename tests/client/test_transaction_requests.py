import pytest

from quire.client.transaction_requests import Fate, fate_of
from quire.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("codes", "fate", "decisive"),
    [
        ([], Fate.DONE, ErrorCode.NONE),
        ([ErrorCode.NONE, ErrorCode.NONE], Fate.DONE, ErrorCode.NONE),
        ([ErrorCode.CONCURRENT_TRANSACTIONS], Fate.AGAIN, ErrorCode.CONCURRENT_TRANSACTIONS),
        ([ErrorCode.PRODUCER_FENCED], Fate.DEAD, ErrorCode.PRODUCER_FENCED),
        ([ErrorCode.INVALID_PRODUCER_EPOCH], Fate.DEAD, ErrorCode.INVALID_PRODUCER_EPOCH),
        ([ErrorCode.TRANSACTION_ABORTABLE], Fate.BROKEN, ErrorCode.TRANSACTION_ABORTABLE),
        ([ErrorCode.ILLEGAL_GENERATION], Fate.BROKEN, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_a_refusal_has_one_meaning(codes: list[ErrorCode], fate: Fate, decisive: ErrorCode) -> None:
    assert fate_of(codes) == (fate, decisive)


def test_the_gravest_refusal_of_several_counts() -> None:
    again, broken, dead = (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TXN_STATE,
    )
    assert fate_of([again, broken]) == (Fate.BROKEN, broken)
    assert fate_of([again, broken, dead]) == (Fate.DEAD, dead)


def test_operations_not_attempted_wait_for_those_that_were_refused() -> None:
    codes = [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]
    assert fate_of(codes) == (Fate.AGAIN, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert fate_of([ErrorCode.OPERATION_NOT_ATTEMPTED]) == (Fate.BROKEN, ErrorCode.OPERATION_NOT_ATTEMPTED)

"""Old epochs are fenced, unknown newer ones are refused, and missing ones are accepted."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.replication.leader_epochs import check_leader_epoch


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        (-1, ErrorCode.NONE),
        (5, ErrorCode.NONE),
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_an_epoch_is_compared_with_the_leaders(requested: int, expected: ErrorCode) -> None:
    assert check_leader_epoch(5, requested) is expected

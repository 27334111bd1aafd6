"""A refusal tells a replica whether it, or the one that it asked, is behind."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.raft.refusals import not_leader


@pytest.mark.parametrize(
    ("asked_epoch", "error"),
    [
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (5, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_the_error_says_whose_epoch_is_behind(asked_epoch: int, error: ErrorCode) -> None:
    assert not_leader(asked_epoch, own_epoch=5) is error

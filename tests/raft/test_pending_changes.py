"""Changes of the voters wait for the machine's answer."""

from quire.protocol.errors import ApiError, ErrorCode
from quire.raft.pending_changes import PendingChanges


def test_each_change_gets_its_own_answer() -> None:
    changes = PendingChanges()
    first, first_result = changes.add()
    second, second_result = changes.add()
    changes.answer(second, ErrorCode.DUPLICATE_VOTER, "twice")
    assert not first_result.done
    assert (second_result.value.code, second_result.value.message) == (ErrorCode.DUPLICATE_VOTER, "twice")
    changes.answer(first, ErrorCode.NONE, "")
    assert first_result.value.code is ErrorCode.NONE


def test_what_waits_at_the_end_is_refused() -> None:
    changes = PendingChanges()
    _, result = changes.add()
    error = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "stopping")
    changes.refuse_all(error)
    assert result.value is error

from quire.protocol.errors import ApiError, ErrorCode


def test_codes_have_kafkas_numbers_and_names() -> None:
    assert int(ErrorCode.NONE) == 0
    assert ErrorCode(-1).name == "UNKNOWN_SERVER_ERROR"
    assert ErrorCode(133).name == "SHARE_SESSION_LIMIT_REACHED"
    assert len(ErrorCode) == 135


def test_some_errors_are_worth_another_try() -> None:
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert not ErrorCode.TOPIC_ALREADY_EXISTS.retriable


def test_an_api_error_carries_its_code_and_reads_well() -> None:
    error = ApiError(ErrorCode.INVALID_PARTITIONS, "a topic needs at least one partition")
    assert error.code is ErrorCode.INVALID_PARTITIONS
    assert str(error) == error.message == "a topic needs at least one partition"
    assert str(ApiError(ErrorCode.NOT_CONTROLLER)) == "NOT_CONTROLLER"

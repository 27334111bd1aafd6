"""A builder collects records and responses; the responses are sent when the records are committed."""

from typing import Any

from quire.coordinators.runtime.record import tombstone
from quire.coordinators.runtime.result_builder import ResultBuilder, timed
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.group_records import GroupMetadataKey

RECORD = tombstone(GroupMetadataKey(group="g"))


def test_a_result_without_responses_has_nothing_to_call() -> None:
    builder = ResultBuilder()
    builder.write(RECORD)
    result = builder.result("response")
    assert (result.response, result.records, result.when_written) == ("response", [RECORD], None)


def test_a_waiting_request_gets_its_response_when_the_records_are_committed() -> None:
    builder = ResultBuilder()
    waiting: Pending[Any] = Pending()
    builder.respond(waiting, "joined")
    result = builder.result(None)
    assert not waiting.done
    assert result.when_written is not None
    result.when_written(ErrorCode.NONE)
    assert waiting.value == "joined"


def test_a_waiting_request_is_refused_when_the_records_are_not_written() -> None:
    builder = ResultBuilder()
    waiting: Pending[Any] = Pending()
    builder.respond(waiting, "joined")
    result = builder.result(None)
    assert result.when_written is not None
    result.when_written(ErrorCode.NOT_COORDINATOR)
    assert isinstance(waiting.value, ApiError)
    assert waiting.value.code is ErrorCode.NOT_COORDINATOR


def test_the_callback_of_the_record_runs_before_responses_are_sent() -> None:
    builder = ResultBuilder()
    waiting: Pending[Any] = Pending()
    seen: list[tuple[ErrorCode, bool]] = []
    builder.write_only(RECORD, lambda code: seen.append((code, waiting.done)))
    builder.respond(waiting, "joined")
    result = builder.result(None)
    assert result.when_written is not None
    result.when_written(ErrorCode.NONE)
    assert seen == [(ErrorCode.NONE, False)]
    assert waiting.done


def test_no_request_to_respond_to_is_nothing() -> None:
    builder = ResultBuilder()
    builder.respond(None, "joined")
    assert builder.result(None).when_written is None


def test_a_timer_runs_an_operation_with_its_own_builder() -> None:
    def step(now_ms: int, builder: ResultBuilder) -> None:
        assert now_ms == 7
        builder.write(RECORD)

    operation = timed(step)
    assert operation(7).records == [RECORD]
    assert operation(7).records == [RECORD]

from typing import Any

import pytest

from quire.client.errors import DisconnectedError, TimedOutError, UnreachableError, UnsupportedError
from quire.client.produce_responses import judge
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.produce import BatchIndexAndErrorMessage, PartitionProduceResponse, ProduceResponse

ANSWERED = ProduceResponse()


def answer(code: ErrorCode, **fields: Any) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=0, error_code=code, **fields)


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER])
def test_a_batch_that_is_in_the_log_already_is_delivered(code: ErrorCode) -> None:
    verdict = judge(answer(code, base_offset=12, log_append_time_ms=99), ANSWERED, oldest=True)
    assert verdict.error is None
    assert (verdict.base_offset, verdict.timestamp_ms) == (12, 99)


def test_a_leader_elsewhere_means_ask_and_try_again_with_nothing_appended() -> None:
    verdict = judge(answer(ErrorCode.NOT_LEADER_OR_FOLLOWER), ANSWERED, oldest=True)
    assert verdict.retry and verdict.refresh and not verdict.uncertain


@pytest.mark.parametrize("code", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND])
def test_some_errors_leave_open_whether_the_batch_was_appended(code: ErrorCode) -> None:
    verdict = judge(answer(code), ANSWERED, oldest=True)
    assert verdict.retry and verdict.uncertain


@pytest.mark.parametrize("code", [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP])
def test_a_batch_that_the_broker_will_never_accept_fails(code: ErrorCode) -> None:
    verdict = judge(answer(code), ANSWERED, oldest=True)
    assert verdict.error is not None and not verdict.retry


def test_out_of_order_behind_a_failed_batch_is_its_echo_and_in_front_it_is_a_loss() -> None:
    refused = answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert judge(refused, ANSWERED, oldest=False).retry
    assert not judge(refused, ANSWERED, oldest=True).retry


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH])
def test_a_producer_the_broker_forgot_begins_a_new_epoch(code: ErrorCode) -> None:
    verdict = judge(answer(code), ANSWERED, oldest=True)
    assert verdict.new_epoch and verdict.retry


def test_a_request_never_sent_is_surely_not_in_the_log_and_one_cut_off_may_be() -> None:
    assert not judge(None, UnreachableError("x"), oldest=True).uncertain
    for error in (DisconnectedError("x"), TimedOutError("x")):
        verdict = judge(None, error, oldest=True)
        assert verdict.uncertain and verdict.retry


def test_a_broker_that_cannot_be_spoken_to_is_not_tried_again() -> None:
    assert not judge(None, UnsupportedError("x"), oldest=True).retry


def test_a_partition_missing_from_the_answer_is_tried_again() -> None:
    verdict = judge(None, ANSWERED, oldest=True)
    assert verdict.retry and verdict.uncertain


def test_the_sentence_names_the_record_that_was_refused() -> None:
    errors = [BatchIndexAndErrorMessage(batch_index=3, batch_index_error_message="no key")]
    refused = answer(ErrorCode.INVALID_RECORD, error_message="One or more records were rejected", record_errors=errors)
    assert "record 3 of the batch: no key" in str(judge(refused, ANSWERED, oldest=True).error)

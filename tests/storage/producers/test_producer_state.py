import pytest

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records.batch import BatchHeader
from quire.storage.indexes.transaction_index import AbortedTransaction
from quire.storage.producers import producer_state
from quire.storage.producers.end_marker import EndMarker
from quire.storage.producers.producer_state import MAX_SEQUENCE, ProducerState
from tests.storage.batches import NOW_MS, batch, header, marker

COMMIT = EndMarker(aborts=False, coordinator_epoch=3)
ABORT = EndMarker(aborts=True, coordinator_epoch=4)


def sent(
    sequence: int,
    count: int = 1,
    *,
    producer_id: int = 7,
    epoch: int = 0,
    offset: int = 0,
    timestamp: int = NOW_MS,
    transactional: bool = False,
) -> BatchHeader:
    values = [b"v"] * count
    return header(
        batch(
            *values,
            producer_id=producer_id,
            producer_epoch=epoch,
            sequence=sequence,
            base_offset=offset,
            timestamp=timestamp,
            transactional=transactional,
        )
    )


def ended(producer_id: int, *, offset: int, epoch: int = 0) -> BatchHeader:
    return header(marker(producer_id, aborts=True, producer_epoch=epoch, base_offset=offset))


def appended(*headers: BatchHeader) -> ProducerState:
    """The state after these batches were appended in order, each as a new one."""
    state = ProducerState()
    offset = 100
    for each in headers:
        assert state.check(each) is None
        each.base_offset = offset
        offset = each.next_offset
        state.update(each)
    return state


def refusal(state: ProducerState, attempt: BatchHeader) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        state.check(attempt)
    return caught.value.code


def test_batches_in_sequence_are_accepted() -> None:
    state = appended(sent(0, 3), sent(3, 2), sent(5))
    assert state.check(sent(6)) is None


def test_a_gap_or_a_step_back_is_out_of_order() -> None:
    state = appended(sent(0, 3), sent(3, 3))
    assert refusal(state, sent(7)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(state, sent(5)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_each_of_the_last_five_batches_is_recognised_with_its_offsets() -> None:
    state = appended(*(sent(2 * at, 2) for at in range(7)))
    for at in range(2, 7):
        original = state.check(sent(2 * at, 2))
        assert original is not None
        assert (original.first_offset, original.last_offset) == (100 + 2 * at, 101 + 2 * at)
    assert refusal(state, sent(2, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "the sixth is forgotten"


def test_a_batch_that_only_overlaps_a_remembered_one_is_not_a_duplicate() -> None:
    assert refusal(appended(sent(0, 3)), sent(0, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_unknown_producer_may_begin_with_any_sequence() -> None:
    assert appended(sent(4711)).check(sent(4712)) is None


def test_sequences_go_round_after_the_largest() -> None:
    state = appended(sent(MAX_SEQUENCE - 1, 4))
    assert state.check(sent(2)) is None
    assert refusal(state, sent(3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    original = state.check(sent(MAX_SEQUENCE - 1, 4))
    assert original is not None and original.first_offset == 100
    assert appended(sent(MAX_SEQUENCE)).check(sent(0)) is None


def test_an_older_epoch_is_fenced() -> None:
    state = appended(sent(0, epoch=3))
    assert refusal(state, sent(1, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_new_epoch_begins_with_sequence_zero() -> None:
    state = appended(sent(0, 3, epoch=3))
    assert refusal(state, sent(3, epoch=4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    later = sent(0, epoch=4)
    assert state.check(later) is None
    state.update(later)
    assert refusal(state, sent(3, epoch=3)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert state.check(sent(1, epoch=4)) is None


def test_producers_do_not_disturb_each_other() -> None:
    state = appended(sent(0, producer_id=1), sent(0, producer_id=2), sent(1, producer_id=1))
    assert state.check(sent(1, producer_id=2)) is None
    assert len(state) == 2


def test_idle_producers_expire_unless_a_transaction_is_open() -> None:
    state = appended(
        sent(0, producer_id=1, timestamp=NOW_MS - 5000),
        sent(0, producer_id=2, timestamp=NOW_MS),
        sent(0, producer_id=3, timestamp=NOW_MS - 5000, transactional=True),
    )
    state.remove_expired(NOW_MS, expiration_ms=5000)
    assert [producer.producer_id for producer in state] == [2, 3]


def test_made_up_producers_push_out_those_that_wrote_longest_ago_and_no_open_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(producer_state, "MOST_PRODUCERS", 20)
    state = ProducerState()
    state.update(sent(0, producer_id=1, offset=0, transactional=True))
    state.update(sent(0, producer_id=2, offset=1))
    for offset in range(2, 200):
        state.update(sent(0, producer_id=1000 + offset, offset=offset, timestamp=NOW_MS + 10**9))
        if offset % 10 == 0:
            state.update(sent(offset // 10, producer_id=2, offset=offset))
        assert len(state) <= 20
    assert state.open_since(1) == 0
    assert state.get(2) is not None, "it continues to write"
    assert state.get(1002) is None and state.get(1199) is not None


def test_a_transaction_is_open_from_its_first_batch_to_its_marker() -> None:
    state = appended(sent(0, producer_id=1), sent(0, 2, producer_id=2, transactional=True))
    assert state.first_open_transaction_offset == 101
    state.update(sent(2, producer_id=2, offset=103, transactional=True))
    assert state.first_open_transaction_offset == 101
    assert state.end_transaction(ended(2, offset=104), COMMIT) is None
    assert state.first_open_transaction_offset is None
    assert state.check(sent(3, producer_id=2, transactional=True)) is None, "sequences continue after a marker"


def test_a_batch_is_a_duplicate_only_within_its_transaction() -> None:
    """librdkafka gives the numbers of batches that an aborted transaction gave up to the next one."""
    state = appended(sent(0, 2, transactional=True))
    repeated = state.check(sent(0, 2, transactional=True))
    assert repeated is not None and repeated.first_offset == 100
    state.end_transaction(ended(7, offset=102), ABORT)
    assert refusal(state, sent(0, 2, transactional=True)) is ErrorCode.UNKNOWN_PRODUCER_ID
    state.update(sent(2, offset=103, transactional=True))
    assert refusal(state, sent(0, 2, transactional=True)) is ErrorCode.UNKNOWN_PRODUCER_ID
    repeated = state.check(sent(2, transactional=True))
    assert repeated is not None and repeated.first_offset == 103


def test_duplicates_without_a_transaction_have_no_such_limit() -> None:
    state = appended(sent(0, 2), sent(2))
    assert state.check(sent(0, 2)) is not None
    assert state.check(sent(2)) is not None


def test_a_marker_with_a_newer_epoch_starts_sequences_from_zero() -> None:
    state = appended(sent(0, 2, epoch=0, transactional=True))
    state.end_transaction(ended(7, epoch=1, offset=102), COMMIT)
    assert refusal(state, sent(2, epoch=1, transactional=True)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert state.check(sent(0, epoch=1, transactional=True)) is None


def test_an_aborted_transaction_is_reported_with_the_last_stable_offset() -> None:
    state = appended(
        sent(0, producer_id=1, transactional=True),
        sent(0, producer_id=2, transactional=True),
        sent(0, producer_id=3, transactional=True),
    )
    assert state.end_transaction(ended(2, offset=103), ABORT) == AbortedTransaction(2, 101, 103, 100)
    assert state.end_transaction(ended(1, offset=104), ABORT) == AbortedTransaction(1, 100, 104, 102)
    assert state.end_transaction(ended(3, offset=105), ABORT) == AbortedTransaction(3, 102, 105, 106)
    assert {producer.coordinator_epoch for producer in state} == {4}


def test_a_transaction_that_wrote_nothing_here_is_not_worth_telling() -> None:
    state = ProducerState()
    assert state.end_transaction(ended(2, offset=0), ABORT) is None
    assert state.first_open_transaction_offset is None


def test_frozen_state_does_not_change_with_the_live_state() -> None:
    state = appended(sent(0, producer_id=7, transactional=True), sent(0, producer_id=8))
    frozen = state.freeze()
    state.end_transaction(ended(7, offset=102), ABORT)
    state.update(sent(1, producer_id=8, offset=103))
    state.update(sent(0, producer_id=9, offset=104))
    assert [(each.producer_id, each.last_sequence, each.current_txn_first_offset) for each in frozen] == [
        (7, 0, 100),
        (8, 0, -1),
    ]
    assert {each.producer_id: each.last_sequence for each in state} == {7: 0, 8: 1, 9: 0}
    assert not state.has_open_transaction(7, 0)

"""Batches after a refused one are refused too, so that the client sends all of them again in order."""

import pytest

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import BatchHeader, read_header
from quire.replication.members import Members
from quire.replication.refused_batches import MOST_BEHIND, MOST_PRODUCERS, RefusedBatches
from quire.replication.settings import PartitionSettings
from tests.replication.leader import Leader, batch

PRODUCER = 7
NO_ROOM = 28


def header(sequence: int, *, producer: int = PRODUCER, epoch: int = 0) -> BatchHeader:
    return read_header(batch(b"x", producer_id=producer, producer_epoch=epoch, base_sequence=sequence))


def error_of(refused: RefusedBatches, later: BatchHeader) -> ErrorCode:
    try:
        refused.check(later)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


def without_room(leader: Leader, sequence: int) -> ErrorCode:
    leader.disk.fail_when(lambda operation: operation.kind == "write", NO_ROOM)
    return send(leader, sequence)


def send(leader: Leader, sequence: int, *, epoch: int = 0) -> ErrorCode:
    try:
        leader.append(b"%d" % sequence, producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


@pytest.mark.parametrize("written_before", [0, 3])
def test_a_batch_behind_one_that_found_no_room_is_written_after_it(written_before: int) -> None:
    """This also holds for a producer that is new to the partition, which may otherwise begin with any sequence
    number."""
    leader = Leader()
    for sequence in range(written_before):
        assert send(leader, sequence) == ErrorCode.NONE
    first, second, third = range(written_before, written_before + 3)
    assert without_room(leader, first) == ErrorCode.KAFKA_STORAGE_ERROR
    assert send(leader, second) == send(leader, third) == ErrorCode.KAFKA_STORAGE_ERROR
    assert [send(leader, sequence) for sequence in (first, second, third)] == [ErrorCode.NONE] * 3
    assert leader.read(0) == [b"%d" % sequence for sequence in range(written_before + 3)]


def test_a_batch_behind_one_that_found_too_few_replicas_is_written_after_it() -> None:
    leader = Leader(PartitionSettings(min_insync_replicas=2))
    leader.partition.become_leader(0, Members((1, 2), (1,)))
    assert send(leader, 0) == send(leader, 1) == ErrorCode.NOT_ENOUGH_REPLICAS
    leader.partition.become_leader(0, Members((1, 2), (1, 2)))
    assert send(leader, 2) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert [send(leader, sequence) for sequence in range(3)] == [ErrorCode.NONE] * 3


def test_a_repeated_batch_is_refused_and_then_found_without_holding_up_the_next_ones() -> None:
    leader = Leader(PartitionSettings(min_insync_replicas=2), isr=(1, 2))
    assert [send(leader, sequence) for sequence in range(3)] == [ErrorCode.NONE] * 3
    leader.partition.become_leader(0, Members((1, 2), (1,)))
    assert send(leader, 1) == send(leader, 2) == ErrorCode.NOT_ENOUGH_REPLICAS
    leader.partition.become_leader(0, Members((1, 2), (1, 2)))
    assert send(leader, 0) == ErrorCode.NONE
    assert send(leader, 2) == ErrorCode.NOT_ENOUGH_REPLICAS, "1 comes first"
    assert [send(leader, sequence) for sequence in range(1, 5)] == [ErrorCode.NONE] * 4
    assert leader.log.end_offset == 5


def test_a_gap_of_another_origin_is_still_out_of_order() -> None:
    leader = Leader()
    assert without_room(leader, 0) == ErrorCode.KAFKA_STORAGE_ERROR
    assert send(leader, 0) == ErrorCode.NONE
    assert send(leader, 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_producer_that_has_given_the_batch_up_hears_that_it_is_out_of_order() -> None:
    leader = Leader()
    assert send(leader, 0) == ErrorCode.NONE
    assert without_room(leader, 1) == ErrorCode.KAFKA_STORAGE_ERROR
    behind = [send(leader, sequence) for sequence in range(2, 2 + MOST_BEHIND)]
    assert behind == [ErrorCode.KAFKA_STORAGE_ERROR] * MOST_BEHIND
    assert send(leader, 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_another_epoch_starts_without_refused_batches() -> None:
    leader = Leader()
    assert without_room(leader, 0) == ErrorCode.KAFKA_STORAGE_ERROR
    assert send(leader, 0, epoch=1) == send(leader, 1, epoch=1) == ErrorCode.NONE


def test_each_refusal_of_the_first_batch_refuses_those_behind_it_again() -> None:
    refused = RefusedBatches()
    for _ in range(3):
        refused.add(header(5), ErrorCode.KAFKA_STORAGE_ERROR)
        found = [error_of(refused, header(6 + number)) for number in range(MOST_BEHIND)]
        assert found == [ErrorCode.KAFKA_STORAGE_ERROR] * MOST_BEHIND
    assert error_of(refused, header(6)) == ErrorCode.NONE


def test_the_first_refused_batch_counts_and_sequence_numbers_wrap() -> None:
    refused = RefusedBatches()
    last = 2**31 - 1
    refused.add(header(last), ErrorCode.NOT_ENOUGH_REPLICAS)
    refused.add(header(0), ErrorCode.KAFKA_STORAGE_ERROR)
    assert error_of(refused, header(last)) == error_of(refused, header(last - 1)) == ErrorCode.NONE
    assert error_of(refused, header(1)) == ErrorCode.NOT_ENOUGH_REPLICAS


def test_producers_without_sequence_numbers_are_not_kept_and_others_are_limited() -> None:
    refused = RefusedBatches()
    refused.add(read_header(batch(b"x")), ErrorCode.KAFKA_STORAGE_ERROR)
    assert len(refused) == 0
    for producer in range(MOST_PRODUCERS + 1):
        refused.add(header(0, producer=producer), ErrorCode.KAFKA_STORAGE_ERROR)
    assert len(refused) == MOST_PRODUCERS
    assert error_of(refused, header(1, producer=0)) == ErrorCode.NONE
    assert error_of(refused, header(1, producer=1)) == ErrorCode.KAFKA_STORAGE_ERROR

"""The state of a transactional id, and its records."""

import pytest

from quire.coordinators.runtime.record import StateRecord, encode_key, encode_value
from quire.coordinators.transaction.machine import TransactionMachine
from quire.coordinators.transaction.transaction import Transaction
from quire.coordinators.transaction.transaction_state import TransactionState
from quire.protocol.errors import ProtocolError
from quire.protocol.messages.transaction_records import PartitionsSchema, TransactionLogValue


def value_of(record: StateRecord) -> TransactionLogValue:
    """The transaction as replayed from the log."""
    decoded = TransactionMachine.record_types.decode(encode_key(record.key), encode_value(record))
    assert isinstance(decoded.value, TransactionLogValue)
    assert decoded.version == record.version
    return decoded.value


def begun(log_version: int = 1) -> Transaction:
    transaction = Transaction("orders", 7)
    transaction.apply(
        value_of(
            transaction.record(
                TransactionState.EMPTY, 1_000, log_version, producer_epoch=3, timeout_ms=60_000, start_ms=-1
            )
        )
    )
    return transaction


def test_an_empty_transaction_has_no_list_of_partitions_rather_than_an_empty_one() -> None:
    record = begun().record(TransactionState.EMPTY, 2_000, 1)
    assert value_of(record).transaction_partitions is None


@pytest.mark.parametrize("log_version", [0, 1])
def test_a_written_transaction_is_read_back(log_version: int) -> None:
    transaction = begun(log_version)
    partitions = {"t": [1, 0], "u": [5]}
    record = transaction.record(TransactionState.ONGOING, 2_000, log_version, partitions=partitions, start_ms=1_500)
    transaction.apply(value_of(record))
    assert (transaction.state, transaction.producer_id, transaction.producer_epoch) == (TransactionState.ONGOING, 7, 3)
    assert (transaction.timeout_ms, transaction.start_ms, transaction.last_update_ms) == (60_000, 1_500, 2_000)
    assert transaction.partitions == partitions


def test_the_older_version_has_no_room_for_other_producer_ids_and_does_without() -> None:
    transaction = begun(0)
    transaction.apply(
        value_of(transaction.record(TransactionState.ONGOING, 2_000, 0, partitions={"t": [0]}, start_ms=2_000))
    )
    value = value_of(
        transaction.record(TransactionState.PREPARE_COMMIT, 3_000, 0, next_producer_id=8, client_version=2)
    )
    assert (value.next_producer_id, value.previous_producer_id, value.client_transaction_version) == (-1, -1, 0)


def test_a_topic_that_is_listed_twice_is_one_topic() -> None:
    transaction = Transaction("orders")
    schema = [PartitionsSchema(topic="t", partition_ids=[0]), PartitionsSchema(topic="t", partition_ids=[1])]
    transaction.apply(TransactionLogValue(transaction_status=TransactionState.ONGOING, transaction_partitions=schema))
    assert transaction.partitions == {"t": [0, 1]}


@pytest.mark.parametrize("status", [-1, 6, 7, 8, 127])
def test_a_state_that_cannot_be_in_the_log_is_refused(status: int) -> None:
    with pytest.raises(ProtocolError, match=f"orders has state {status}"):
        Transaction("orders").apply(TransactionLogValue(transaction_status=status))


def test_a_state_that_may_not_follow_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="COMPLETE_COMMIT cannot follow EMPTY"):
        begun().record(TransactionState.COMPLETE_COMMIT, 2_000, 1)


def test_the_epoch_before_is_known_from_the_log_where_every_end_bumps_it() -> None:
    ended = TransactionLogValue(
        transaction_status=TransactionState.COMPLETE_ABORT,
        producer_id=7,
        previous_producer_id=7,
        producer_epoch=4,
        client_transaction_version=2,
    )
    transaction = Transaction("orders")
    transaction.apply(ended)
    assert transaction.last_epoch == 3
    ended.producer_id, ended.producer_epoch = 8, 0
    transaction.apply(ended)
    assert transaction.last_epoch == 32766

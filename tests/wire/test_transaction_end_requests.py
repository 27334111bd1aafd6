"""EndTxn, sent without a client: a transaction is ended once, by its producer, in time."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.testing import WireConnection
from tests.wire.clients import OTHER_BROKER, eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.raw import list_offset
from tests.wire.raw_transactions import (
    END_NEWEST,
    Txn,
    began,
    begin,
    described_transaction,
    end_txn,
    retrying,
    transaction_state,
    wait_until_over,
)

PROTOCOLS = [1, 2]
SHORT_MS = 2000
"""The time-out of a transaction that ends soon, but not while a busy machine still begins it."""
TOO_LATE = {ErrorCode.PRODUCER_FENCED} | ({ErrorCode.INVALID_TXN_STATE} if OTHER_BROKER is not None else set())
"""The error for a commit of an aborted transaction. It differs between Kafka 4.3 on one side, and Quire and later
versions of Kafka on the other."""
FENCED, OLD_EPOCH = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("version", range(END_NEWEST + 1))
@pytest.mark.parametrize("commit", [True, False])
def test_every_version_ends_a_transaction(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName, version: int, commit: bool
) -> None:
    topic = make_topic()
    protocol = 2 if version >= 5 else 1
    producer = began(connection, new_transactional_id(), topic, protocol)
    assert producer.end(commit=commit, version=version) == ErrorCode.NONE
    wait_until_over(producer, "CompleteCommit" if commit else "CompleteAbort")
    assert producer.epoch == (1 if protocol == 2 else 0)
    assert list_offset(connection, topic, -1, isolation_level=1).offset == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_transactions_follow_one_another(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName, protocol: int
) -> None:
    topic = make_topic()
    producer = Txn(connection, new_transactional_id(), protocol=protocol).init()
    for number in range(20):
        begin(producer, topic)
        assert producer.end(commit=number % 3 > 0) == ErrorCode.NONE
    eventually(lambda: list_offset(connection, topic, -1, isolation_level=1).offset == 40)
    assert producer.epoch == (20 if protocol == 2 else 0)


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_that_is_asked_for_again_is_answered_the_same(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName, commit: bool
) -> None:
    producer = began(connection, new_transactional_id(), make_topic(), 2)
    identity = producer.identity
    first = end_txn(connection, commit=commit, **identity)
    for _ in range(2):
        again = retrying(lambda: end_txn(connection, commit=commit, **identity))
        assert (again.error_code, again.producer_id, again.producer_epoch) == (
            ErrorCode.NONE,
            first.producer_id,
            first.producer_epoch,
        )
    other = end_txn(connection, commit=not commit, **identity)
    assert other.error_code in ({ErrorCode.INVALID_TXN_STATE} if commit else TOO_LATE)


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_that_is_asked_for_again_in_protocol_1_is_answered_the_same(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName, commit: bool
) -> None:
    producer = began(connection, new_transactional_id(), make_topic(), 1)
    assert producer.end(commit=commit) == ErrorCode.NONE
    assert retrying(lambda: producer.end(commit=commit)) == ErrorCode.NONE
    assert producer.end(commit=not commit) == ErrorCode.INVALID_TXN_STATE


def test_a_late_end_cannot_end_the_next_transaction(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic()
    producer = began(connection, new_transactional_id(), topic, 2)
    late = producer.identity
    producer.commit()
    begin(producer, topic)
    for commit in (True, False):
        assert end_txn(connection, commit=commit, **late).error_code == FENCED
    assert transaction_state(connection, producer.transactional_id) == "Ongoing"
    producer.commit()


def test_a_late_record_cannot_get_into_the_next_transaction(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic()
    producer = began(connection, new_transactional_id(), topic, 2)
    late = Txn(connection, producer.transactional_id)
    late.producer_id, late.epoch = producer.producer_id, producer.epoch
    producer.commit()
    wait_until_over(producer)
    for _ in range(2):
        assert late.produce(topic, b"late", sequence=1) == OLD_EPOCH
        begin(producer, topic)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_transaction_that_was_not_begun_cannot_be_committed(
    connection: WireConnection, new_transactional_id: NewName, protocol: int
) -> None:
    producer = Txn(connection, new_transactional_id(), protocol=protocol).init()
    assert producer.end(commit=True) == ErrorCode.INVALID_TXN_STATE


def test_a_transaction_that_was_not_begun_can_be_aborted_in_protocol_2_alone(
    connection: WireConnection, new_transactional_id: NewName
) -> None:
    """Its producer cannot know whether anything of it arrived."""
    producer = Txn(connection, new_transactional_id()).init()
    producer.abort()
    assert producer.epoch == 1
    old = Txn(connection, new_transactional_id(), protocol=1).init()
    assert old.end(commit=False) == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_another_producer_cannot_end_a_transaction(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName, protocol: int
) -> None:
    topic = make_topic()
    mine = began(connection, new_transactional_id(), topic, protocol)
    other = Txn(connection, new_transactional_id(), protocol=protocol).init()
    wrong_id = mine.identity | {"producer_id": other.producer_id}
    wrong_name = other.identity | {"transactional_id": mine.transactional_id}
    ahead = mine.identity | {"producer_epoch": mine.epoch + 1}
    unknown = mine.identity | {"transactional_id": new_transactional_id()}
    for version in (0, 1, 2, 4, 5):
        for forged, code in (
            (wrong_id, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
            (wrong_name, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
            (unknown, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
            (ahead, FENCED if version >= 2 else OLD_EPOCH),
            (mine.identity | {"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ):
            assert end_txn(connection, commit=True, version=version, **forged).error_code == code
    assert transaction_state(connection, mine.transactional_id) == "Ongoing"
    mine.commit()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_another_producer_cannot_add_to_a_transaction(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName, protocol: int
) -> None:
    topic = make_topic(2)
    mine = began(connection, new_transactional_id(), topic, protocol)
    forged = Txn(connection, mine.transactional_id, protocol=protocol)
    forged.producer_id, forged.epoch = mine.producer_id + 10_000, mine.epoch
    assert forged.add({topic: [1]}) == {(topic, 1): ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert forged.add_offsets("a-group") == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert forged.produce(topic, b"x", partition=1) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    forged.producer_id, forged.epoch = mine.producer_id, mine.epoch + 1
    assert forged.add({topic: [1]}) == {(topic, 1): FENCED}
    mine.commit()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName, protocol: int
) -> None:
    topic = make_topic()
    slow = began(connection, new_transactional_id(), topic, protocol, timeout_ms=SHORT_MS)
    wait_until_over(slow, "CompleteAbort")
    found = described_transaction(connection, slow.transactional_id)
    assert (found.producer_id, found.producer_epoch) == (slow.producer_id, slow.epoch + 1)
    assert list_offset(connection, topic, -1, isolation_level=1).offset == 2
    assert slow.produce(topic, b"late") == OLD_EPOCH
    assert slow.add({topic: [0]}) == {(topic, 0): FENCED}
    assert slow.end(commit=True, version=4) == FENCED
    assert slow.end(commit=True, version=1) == OLD_EPOCH
    again = Txn(connection, slow.transactional_id, protocol=protocol).init()
    begin(again, topic)
    again.commit()


def test_a_producer_that_missed_the_abort_of_its_transaction_can_request_it_again_and_continue(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic()
    slow = began(connection, new_transactional_id(), topic, 2, timeout_ms=SHORT_MS)
    wait_until_over(slow, "CompleteAbort")
    assert slow.end(commit=True) in TOO_LATE
    slow.abort()
    begin(slow, topic)
    slow.commit()


def test_a_transaction_within_its_timeout_is_not_aborted(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    """Meanwhile another transaction with a short timeout is aborted."""
    topic = make_topic()
    patient = began(connection, new_transactional_id(), topic, 2)
    hasty = began(connection, new_transactional_id(), topic, 2, timeout_ms=SHORT_MS)
    wait_until_over(hasty, "CompleteAbort")
    assert transaction_state(connection, patient.transactional_id) == "Ongoing"
    patient.commit()

"""InitProducerId, sent without a client: which producer gets a transactional id, and what happens to the previous
one."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.testing import WireConnection
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.raw import list_offset
from tests.wire.raw_transactions import (
    INIT_NEWEST,
    Txn,
    began,
    begin,
    described_transaction,
    init_producer_id,
)

LONGEST_TIMEOUT_MS = 900_000
PROTOCOLS = [1, 2]
FENCED, OLD_EPOCH = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("version", range(INIT_NEWEST + 1))
def test_every_version_gives_a_transactional_id_the_next_epoch(
    connection: WireConnection, new_transactional_id: NewName, version: int
) -> None:
    transactional_id = new_transactional_id()
    first = init_producer_id(connection, transactional_id, version=version)
    assert (first.error_code, first.producer_epoch) == (ErrorCode.NONE, 0)
    second = init_producer_id(connection, transactional_id, version=version)
    assert (second.producer_id, second.producer_epoch) == (first.producer_id, 1)
    assert init_producer_id(connection, new_transactional_id()).producer_id != first.producer_id


@pytest.mark.parametrize("timeout_ms", [-1, 0, LONGEST_TIMEOUT_MS + 1])
def test_a_transaction_timeout_out_of_bounds_is_refused(
    connection: WireConnection, new_transactional_id: NewName, timeout_ms: int
) -> None:
    refused = init_producer_id(connection, new_transactional_id(), timeout_ms=timeout_ms)
    assert (refused.error_code, refused.producer_id) == (ErrorCode.INVALID_TRANSACTION_TIMEOUT, -1)


def test_an_empty_transactional_id_is_refused_and_none_is_not(connection: WireConnection, coordinators: None) -> None:
    assert init_producer_id(connection, "").error_code == ErrorCode.INVALID_REQUEST
    assert init_producer_id(connection, None, timeout_ms=-1).error_code == ErrorCode.NONE


def test_a_producer_that_proves_its_identity_gets_the_next_epoch_and_again_on_repetition(
    connection: WireConnection, new_transactional_id: NewName
) -> None:
    transactional_id = new_transactional_id()
    first = init_producer_id(connection, transactional_id)
    known = {"producer_id": first.producer_id, "producer_epoch": 0}
    for _ in range(3):
        again = init_producer_id(connection, transactional_id, **known)
        assert (again.error_code, again.producer_id, again.producer_epoch) == (0, first.producer_id, 1)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_producer_that_was_replaced_is_fenced(
    connection: WireConnection, new_transactional_id: NewName, version: int
) -> None:
    transactional_id = new_transactional_id()
    first = init_producer_id(connection, transactional_id)
    for _ in range(2):
        init_producer_id(connection, transactional_id)
    fenced = FENCED if version >= 4 else OLD_EPOCH
    for producer_id, epoch in ((first.producer_id, 0), (first.producer_id, 9), (first.producer_id + 10_000, 2)):
        refused = init_producer_id(
            connection, transactional_id, version=version, producer_id=producer_id, producer_epoch=epoch
        )
        assert (refused.error_code, refused.producer_id) == (fenced, -1)


def test_a_producer_id_needs_its_epoch(connection: WireConnection, new_transactional_id: NewName) -> None:
    refused = init_producer_id(connection, new_transactional_id(), producer_id=7, producer_epoch=-1)
    assert refused.error_code == ErrorCode.INVALID_REQUEST


def test_a_forgotten_transactional_id_starts_again(connection: WireConnection, new_transactional_id: NewName) -> None:
    found = init_producer_id(connection, new_transactional_id(), producer_id=7, producer_epoch=3)
    assert (found.error_code, found.producer_epoch) == (ErrorCode.NONE, 0)
    assert found.producer_id != 7


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_unfinished_transaction_is_aborted_by_the_next_init(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName, protocol: int
) -> None:
    topic, transactional_id = make_topic(), new_transactional_id()
    first = began(connection, transactional_id, topic, protocol)
    second = Txn(connection, transactional_id, protocol=protocol).init()
    assert (second.producer_id, second.epoch) == (first.producer_id, first.epoch + 2)
    assert described_transaction(connection, transactional_id).transaction_state == "Empty"
    assert list_offset(connection, topic, -1, isolation_level=1).offset == 2, (
        "the record, and the end of its transaction"
    )
    assert first.produce(topic, b"late") == OLD_EPOCH
    assert first.end(commit=True) == FENCED
    begin(second, topic)
    second.commit()


def test_ten_producers_with_one_transactional_id_leave_the_last_one_working(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic, transactional_id = make_topic(), new_transactional_id()
    producers = [Txn(connection, transactional_id) for _ in range(10)]
    for producer in producers:
        producer.init()
        begin(producer, topic)
    *fenced, last = producers
    for producer in fenced:
        assert producer.produce(topic, b"late") == OLD_EPOCH
        assert producer.end(commit=True) == FENCED
        assert producer.add({topic: [0]}) == {(topic, 0): FENCED}
        assert producer.add_offsets("a-group") == FENCED
    assert last.produce(topic, b"more") == ErrorCode.NONE
    last.commit()

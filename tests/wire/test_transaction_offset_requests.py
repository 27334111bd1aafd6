"""Offsets in transactions, AddOffsetsToTxn and TxnOffsetCommit, sent without a client."""

from typing import Any

import pytest

from quire.protocol.errors import ErrorCode
from quire.testing import WireConnection
from tests.wire.clients import eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.raw_groups import join, stable_alone, state_of
from tests.wire.raw_offsets import commit, committed, delete_offsets, fetch_group
from tests.wire.raw_transactions import (
    ADD_OFFSETS_NEWEST,
    BUMPS_WITH_EVERY_END_FROM,
    TXN_COMMIT_NEWEST,
    Txn,
    described_transaction,
    retrying,
)

PROTOCOLS = [1, 2]
KNOWS_MEMBERS_FROM = 3


@pytest.fixture(params=PROTOCOLS, ids=lambda protocol: f"protocol {protocol}")
def producer(connection: WireConnection, new_transactional_id: NewName, request: pytest.FixtureRequest) -> Txn:
    return Txn(connection, new_transactional_id(), protocol=request.param).init()


def send_offset(producer: Txn, group: str, topic: str, offset: int, **more: Any) -> ErrorCode:
    """Commits offsets as each protocol requires: in protocol 2 the group need not be added first."""
    if producer.protocol == 1:
        assert retrying(lambda: producer.add_offsets(group)) == ErrorCode.NONE
    return retrying(lambda: producer.commit_offset(group, topic, offset, **more))


def stable_offset(connection: WireConnection, group: str, topic: str) -> int:
    """The committed offset, as soon as no transaction is open."""
    eventually(lambda: committed(connection, group, topic, require_stable=True).error_code == ErrorCode.NONE)
    return committed(connection, group, topic, require_stable=True).committed_offset


def test_offsets_become_visible_when_the_transaction_commits_and_not_before(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, producer: Txn
) -> None:
    topic, group = make_topic(), new_group()
    commit(connection, group, topic, 1)
    assert send_offset(producer, group, topic, 5) == ErrorCode.NONE
    assert committed(connection, group, topic).committed_offset == 1
    producer.commit()
    assert stable_offset(connection, group, topic) == 5


def test_offsets_are_gone_when_the_transaction_aborts(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, producer: Txn
) -> None:
    topic, group = make_topic(), new_group()
    commit(connection, group, topic, 1)
    send_offset(producer, group, topic, 5)
    producer.abort()
    assert stable_offset(connection, group, topic) == 1


def test_a_fetch_of_stable_offsets_must_wait_while_a_transaction_is_open(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, producer: Txn
) -> None:
    topic, group = make_topic(2), new_group()
    commit(connection, group, topic, 1, partition=1)
    send_offset(producer, group, topic, 5)
    waiting = committed(connection, group, topic, require_stable=True)
    assert (waiting.error_code, waiting.committed_offset) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    other = committed(connection, group, topic, 1, require_stable=True)
    assert (other.error_code, other.committed_offset) == (ErrorCode.NONE, 1), "it has nothing to do with it"
    assert committed(connection, group, topic).error_code == ErrorCode.NONE
    producer.commit()
    assert stable_offset(connection, group, topic) == 5


def test_the_last_of_several_commits_in_a_transaction_counts(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, producer: Txn
) -> None:
    topic, group = make_topic(), new_group()
    for offset in (5, 9, 7):
        send_offset(producer, group, topic, offset, metadata=f"at {offset}")
    producer.commit()
    assert stable_offset(connection, group, topic) == 7
    assert committed(connection, group, topic).metadata == "at 7"


def test_a_plain_commit_after_the_transactional_one_wins(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, producer: Txn
) -> None:
    """Their order in the log decides which one counts, not the end of the transaction."""
    topic, group = make_topic(), new_group()
    send_offset(producer, group, topic, 5)
    commit(connection, group, topic, 8)
    producer.commit()
    assert stable_offset(connection, group, topic) == 8


@pytest.mark.parametrize("version", range(TXN_COMMIT_NEWEST + 1))
def test_every_version_commits_offsets_in_a_transaction(
    connection: WireConnection,
    make_topic: MakeTopic,
    new_group: NewName,
    new_transactional_id: NewName,
    version: int,
) -> None:
    topic, group = make_topic(), new_group()
    joined = stable_alone(connection, group)
    protocol = 2 if version >= BUMPS_WITH_EVERY_END_FROM else 1
    producer = Txn(connection, new_transactional_id(), protocol=protocol).init()
    member: dict[str, Any] = (
        {"generation_id": 1, "member_id": joined.member_id} if version >= KNOWS_MEMBERS_FROM else {}
    )
    assert producer.add_offsets(group, version=min(version, ADD_OFFSETS_NEWEST)) == ErrorCode.NONE
    assert producer.commit_offset(group, topic, 5, version=version, **member) == ErrorCode.NONE
    producer.commit()
    assert stable_offset(connection, group, topic) == 5


def test_protocol_1_must_announce_the_group_first(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, new_transactional_id: NewName
) -> None:
    topic, group = make_topic(), new_group()
    producer = Txn(connection, new_transactional_id(), protocol=1).init()
    assert producer.commit_offset(group, topic, 5, version=4) == ErrorCode.TRANSACTION_ABORTABLE
    assert producer.commit_offset(group, topic, 5, version=3) == ErrorCode.INVALID_TXN_STATE
    assert committed(connection, group, topic, require_stable=True).committed_offset == -1


def test_the_partition_of_the_group_is_part_of_the_transaction(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, producer: Txn
) -> None:
    send_offset(producer, new_group(), make_topic(), 5)
    found = described_transaction(connection, producer.transactional_id)
    assert (found.transaction_state, [each.topic for each in found.topics]) == ("Ongoing", ["__consumer_offsets"])


def test_a_group_is_made_by_a_transactional_commit(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, producer: Txn
) -> None:
    topic, group = make_topic(), new_group()
    send_offset(producer, group, topic, 5)
    assert state_of(connection, group) == "Empty"
    producer.commit()


def test_members_commit_in_transactions_with_their_generation(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, producer: Txn
) -> None:
    topic, group = make_topic(), new_group()
    joined = stable_alone(connection, group)
    mine = {"member_id": joined.member_id}
    assert send_offset(producer, group, topic, 5, generation_id=1, **mine) == ErrorCode.NONE
    assert send_offset(producer, group, topic, 6, generation_id=2, **mine) == ErrorCode.ILLEGAL_GENERATION
    assert send_offset(producer, group, topic, 6, generation_id=0, **mine) == ErrorCode.ILLEGAL_GENERATION
    forged = {"member_id": "forged", "generation_id": 1}
    assert send_offset(producer, group, topic, 6, **forged) == ErrorCode.UNKNOWN_MEMBER_ID
    producer.commit()
    assert stable_offset(connection, group, topic) == 5


def test_a_static_member_that_was_replaced_cannot_commit_in_a_transaction(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, producer: Txn
) -> None:
    topic, group = make_topic(), new_group()
    first = stable_alone(connection, group, instance="named")
    join(connection, group, instance="named")
    replaced = {"member_id": first.member_id, "generation_id": 1, "group_instance_id": "named"}
    assert send_offset(producer, group, topic, 5, **replaced) == ErrorCode.FENCED_INSTANCE_ID


def test_a_producer_that_names_no_member_commits_for_any_group(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, producer: Txn
) -> None:
    """Unlike a plain commit, the group does not check the member; the producer is responsible."""
    topic, group = make_topic(), new_group()
    stable_alone(connection, group)
    assert send_offset(producer, group, topic, 5) == ErrorCode.NONE
    producer.commit()
    assert stable_offset(connection, group, topic) == 5


def test_impossible_offsets_are_refused_one_by_one(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, producer: Txn
) -> None:
    topic, group = make_topic(), new_group()
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert send_offset(producer, group, f"{topic}-nowhere", 5) == unknown
    assert send_offset(producer, group, topic, 5, partition=9) == unknown
    too_long = send_offset(producer, group, topic, 5, metadata="x" * 4097)
    assert too_long == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert send_offset(producer, group, topic, 5) == ErrorCode.NONE
    producer.commit()
    assert stable_offset(connection, group, topic) == 5


def test_strangers_cannot_commit_offsets_in_a_transaction(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, producer: Txn
) -> None:
    topic, group = make_topic(), new_group()
    send_offset(producer, group, topic, 5)
    forged = Txn(connection, producer.transactional_id, protocol=producer.protocol)
    forged.producer_id, forged.epoch = producer.producer_id + 10_000, 0
    assert forged.commit_offset(group, topic, 7) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    forged.producer_id, forged.epoch = producer.producer_id, producer.epoch + 1
    assert forged.commit_offset(group, topic, 7) == ErrorCode.INVALID_PRODUCER_EPOCH
    producer.commit()
    assert stable_offset(connection, group, topic) == 5


def test_an_offset_is_deleted_together_with_what_is_pending(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, producer: Txn
) -> None:
    topic, group = make_topic(), new_group()
    commit(connection, group, topic, 1)
    send_offset(producer, group, topic, 5)
    assert delete_offsets(connection, group, {topic: [0]}) == (ErrorCode.NONE, {(topic, 0): ErrorCode.NONE})
    producer.commit()
    eventually(lambda: committed(connection, group, topic, require_stable=True).error_code == ErrorCode.NONE)
    assert fetch_group(connection, group, None).topics == []

from hypothesis import given
from hypothesis import strategies as st

from quire.cli.storage.dump.contents import decode_control, decoder_of
from quire.cli.storage.dump.folders import Contents
from quire.protocol import uuids
from quire.protocol.codec import encode
from quire.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from quire.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from quire.protocol.messages.metadata_records import PartitionRecord, TopicRecord
from quire.protocol.messages.share_records import ShareSnapshotKey
from quire.protocol.messages.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue
from quire.protocol.records import Record
from quire.protocol.schema import Message
from quire.raft.record_frame import encode_frame

ID = bytes(range(16))


def prefixed(number: int, message: Message, version: int) -> bytes:
    return number.to_bytes(2, "big") + encode(message, version)


def test_a_committed_offset() -> None:
    key = prefixed(1, OffsetCommitKey(group="g", topic="orders", partition=3), 0)
    value = prefixed(3, OffsetCommitValue(offset=42, leader_epoch=2, metadata="m", commit_timestamp=9), 3)
    assert decoder_of(Contents.OFFSETS)(Record(key=key, value=value)) == {
        "record": "OffsetCommit",
        "version": 3,
        "key": {"group": "g", "topic": "orders", "partition": 3},
        "value": {"offset": 42, "leader_epoch": 2, "metadata": "m", "commit_timestamp": 9},
    }


def test_the_encodings_of_classic_consumers_are_decoded() -> None:
    subscription = prefixed(0, ConsumerProtocolSubscription(topics=["orders"]), 0)
    member = MemberMetadata(member_id="m", subscription=subscription, assignment=b"?")
    group = GroupMetadataValue(protocol_type="consumer", generation=3, members=[member])
    key = prefixed(2, GroupMetadataKey(group="g"), 0)
    value = decoder_of(Contents.OFFSETS)(Record(key=key, value=prefixed(3, group, 3)))["value"]
    assert isinstance(value, dict)
    (shown,) = value["members"]
    assert shown["subscription"] == {"topics": ["orders"], "user_data": None}
    assert shown["assignment"] == b"?", "what cannot be decoded is left as it is"
    group.protocol_type = "connect"
    value = decoder_of(Contents.OFFSETS)(Record(key=key, value=prefixed(3, group, 3)))["value"]
    assert isinstance(value, dict) and value["members"][0]["subscription"] == subscription


def test_a_tombstone_has_a_key_and_null() -> None:
    key = prefixed(0, TransactionLogKey(transactional_id="t"), 0)
    assert decoder_of(Contents.TRANSACTIONS)(Record(key=key)) == {
        "record": "TransactionLog",
        "key": {"transactional_id": "t"},
        "value": None,
    }


def test_a_transactions_state_is_named() -> None:
    state = TransactionLogValue(
        producer_id=5,
        transaction_status=1,
        transaction_partitions=[PartitionsSchema(topic="orders", partition_ids=[0, 2])],
    )
    key = prefixed(0, TransactionLogKey(transactional_id="t"), 0)
    decoded = decoder_of(Contents.TRANSACTIONS)(Record(key=key, value=prefixed(1, state, 1)))
    value = decoded["value"]
    assert isinstance(value, dict)
    assert value["transaction_status"] == "Ongoing"
    assert value["transaction_partitions"] == [{"topic": "orders", "partition_ids": [0, 2]}]
    assert "next_producer_id" not in value  # a missing tagged field


def test_metadata_records_have_their_ids_as_text() -> None:
    decode = decoder_of(Contents.METADATA)
    assert decode(Record(value=encode_frame(TopicRecord(name="orders", topic_id=ID), 0))) == {
        "record": "TopicRecord",
        "version": 0,
        "value": {"name": "orders", "topic_id": uuids.to_text(ID)},
    }
    decoded = decode(Record(value=encode_frame(PartitionRecord(partition_id=1, directories=[ID, ID]), 1)))
    assert isinstance(decoded["value"], dict)
    assert decoded["value"]["directories"] == [uuids.to_text(ID)] * 2


def test_share_group_state() -> None:
    key = prefixed(0, ShareSnapshotKey(group_id="g", topic_id=ID, partition=1), 0)
    decoded = decoder_of(Contents.SHARES)(Record(key=key))
    assert (decoded["record"], decoded["value"]) == ("ShareSnapshot", None)


def test_undecodable_content_is_shown_raw_with_the_reason() -> None:
    unknown = Record(key=b"\x00\x63rest", value=b"v")
    for contents in (Contents.OFFSETS, Contents.TRANSACTIONS, Contents.SHARES, Contents.METADATA):
        decoded = decoder_of(contents)(unknown)
        assert (decoded["key"], decoded["value"]) == (unknown.key, unknown.value)
        assert decoded["not_decoded"]
    newer = prefixed(1, OffsetCommitKey(group="g", topic="orders", partition=3), 0)
    assert "version 9" in str(decoder_of(Contents.OFFSETS)(Record(key=newer, value=b"\x00\x09"))["not_decoded"])
    for key in (None, b"", b"\x00\x00\x00\x63"):
        assert decode_control(Record(key=key))["not_decoded"]


@given(
    contents=st.sampled_from(list(Contents)),
    key=st.none() | st.binary(max_size=40) | st.sampled_from(range(24)).map(lambda number: number.to_bytes(2, "big")),
    value=st.none() | st.binary(max_size=40),
)
def test_no_bytes_at_all_keep_a_record_from_being_shown(contents: Contents, key: bytes, value: bytes) -> None:
    assert "value" in decoder_of(contents)(Record(key=key, value=value))
    assert "value" in decode_control(Record(key=key, value=value))


def test_plain_records_are_not_interpreted() -> None:
    assert decoder_of(Contents.PLAIN)(Record(key=None, value=b"\xff")) == {"key": None, "value": b"\xff"}

"""A committed offset as a record: the bytes are Apache Kafka's."""

from quire.coordinators.group.offsets.committed import NO_TIMESTAMP, offset_record, offset_tombstone
from quire.coordinators.runtime.record import RecordTypes, encode_key, encode_value
from quire.protocol.messages.group_records import KEY_TYPES, VALUE_TYPES, OffsetCommitKey, OffsetCommitValue
from quire.protocol.records import decode_batch, walk_batches
from tests.golden.recorded import FOLDERS


def test_commits_are_written_byte_for_byte_as_apache_kafka_wrote_them() -> None:
    (folder,) = (folder for folder in FOLDERS if folder.name == "transactional")
    log = (folder / "data" / "__consumer_offsets-0" / "00000000000000000000.log").read_bytes()
    batches = [header for header in walk_batches(log) if not header.is_control]
    assert len(batches) == 2
    for theirs in (record for header in batches for record in decode_batch(log, header)):
        key, value, _ = RecordTypes(KEY_TYPES, VALUE_TYPES).decode(theirs.key, theirs.value)
        assert isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue)
        ours = offset_record(
            key.group,
            key.topic,
            key.partition,
            offset=value.offset,
            leader_epoch=value.leader_epoch,
            metadata=value.metadata,
            commit_timestamp_ms=value.commit_timestamp,
            expire_timestamp_ms=NO_TIMESTAMP,
            topic_id=value.topic_id,
        )
        assert (encode_key(ours.key), encode_value(ours)) == (theirs.key, theirs.value)


def test_only_the_first_version_says_when_an_offset_expires() -> None:
    record = offset_record(
        "g",
        "t",
        0,
        offset=4,
        leader_epoch=2,
        metadata="",
        commit_timestamp_ms=5,
        expire_timestamp_ms=9,
        topic_id=b"i" * 16,
    )
    value = encode_value(record)
    assert value is not None and value[:2] == b"\0\1" and value.endswith((9).to_bytes(8, "big"))


def test_a_tombstone_has_the_key_alone() -> None:
    record = offset_tombstone("g", "t", 3)
    assert encode_key(record.key) == b"\0\1\0\1g\0\1t\0\0\0\3"
    assert encode_value(record) is None

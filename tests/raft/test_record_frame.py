"""Metadata records in their frames: Kafka's bytes, and what is refused."""

import pytest

from quire.protocol.messages.metadata_records import FeatureLevelRecord, NoOpRecord, TopicRecord
from quire.raft.record_frame import UnknownRecordError, decode_frame, encode_frame


def test_a_record_is_framed_as_kafka_frames_it() -> None:
    record = FeatureLevelRecord(name="metadata.version", feature_level=30)
    assert encode_frame(record, 0) == bytes.fromhex("010c00116d657461646174612e76657273696f6e001e00")


def test_a_framed_record_is_read_back() -> None:
    record = TopicRecord(name="orders", topic_id=b"t" * 16)
    assert decode_frame(encode_frame(record, 0)) == record


@pytest.mark.parametrize(
    ("frame", "complaint"),
    [
        (b"\x02\x0c\x00", "frame version 2, .* upgrade this node"),
        (b"\x01\x63\x00", "type 99, .* upgrade this node"),
        (b"\x01\x0c\x07", "FeatureLevelRecord in version 7, .* upgrade this node"),
        (b"\x01\x0c\x00\x11meta", "cannot be read"),
        (encode_frame(NoOpRecord(), 0) + b"x", "1 bytes too many"),
        (b"", "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_unknown_records_are_refused_by_name(frame: bytes | None, complaint: str) -> None:
    with pytest.raises(UnknownRecordError, match=complaint):
        decode_frame(frame)

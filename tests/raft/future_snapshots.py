"""Snapshots of a later version: complete and intact, with a record that this version does not know."""

from quire.protocol.messages.metadata_records import FeatureLevelRecord
from quire.protocol.records import Record, build_batch
from quire.raft.record_frame import encode_frame
from quire.raft.snapshot_file import encode_snapshot

UNKNOWN_TYPE = b"\x01\x63\x00"
UNKNOWN_VERSION = b"\x01\x0c\x07"
UNKNOWN_LEVEL = encode_frame(FeatureLevelRecord(name="metadata.version", feature_level=99), 0)

OF_THE_FUTURE = {
    "there is a metadata record of type 99": UNKNOWN_TYPE,
    "there is a FeatureLevelRecord in version 7": UNKNOWN_VERSION,
    "the cluster has feature metadata.version at level 99": UNKNOWN_LEVEL,
}
"""By the start of the expected error message."""


def future_snapshot(record: bytes, epoch: int = 1) -> bytes:
    """A snapshot of a static quorum with one framed record."""
    header, _, footer = encode_snapshot(
        [(FeatureLevelRecord(name="x"), 0)], epoch=epoch, now_ms=1, last_contained_timestamp_ms=1
    )
    unknown = build_batch([Record(0, 1, None, record)], base_offset=1, leader_epoch=epoch)
    return bytes(header) + bytes(unknown) + bytes(footer)

"""The bytes of the batches that this node writes as the leader: records of the controller, or control records."""

from collections.abc import Sequence
from typing import NamedTuple

from quire.protocol.records import Record, build_batch
from quire.raft.control_batches import control_batch, start_of_epoch
from quire.raft.control_state import Control
from quire.raft.effects import StartOfEpoch
from quire.raft.log_store import CommittedBatch
from quire.raft.messages import Batch
from quire.raft.record_frame import encode_frame
from quire.raft.snapshot_taker import VersionedRecord


class Proposal(NamedTuple):
    """The payload of a batch with records of the controller, and their timestamp."""

    records: Sequence[VersionedRecord]
    timestamp_ms: int


def encode_written(batch: Batch, kraft_version: int, now_ms: int) -> tuple[bytearray, CommittedBatch]:
    """The bytes for the log, and the batch as the listener gets it when it is committed."""
    payload, base_offset, epoch = batch.payload, batch.base_offset, batch.epoch
    if isinstance(payload, Proposal):
        now_ms = payload.timestamp_ms
        framed = [Record(0, now_ms, None, encode_frame(record, version)) for record, version in payload.records]
        encoded = build_batch(framed, base_offset=base_offset, leader_epoch=epoch)
        records = [record for record, _ in payload.records]
        return encoded, CommittedBatch(base_offset, batch.next_offset - 1, epoch, now_ms, len(encoded), records)
    if isinstance(payload, StartOfEpoch):
        encoded = start_of_epoch(payload, kraft_version, base_offset=base_offset, epoch=epoch, now_ms=now_ms)
    else:
        assert isinstance(payload, Control)
        encoded = control_batch(payload, base_offset=base_offset, epoch=epoch, now_ms=now_ms)
    return encoded, CommittedBatch(base_offset, batch.next_offset - 1, epoch, now_ms, len(encoded), [])

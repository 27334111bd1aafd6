"""The control records of the metadata log: the leader, the version of KRaft, the voters.

They belong to raft and never reach the image. A leader starts its epoch with a LeaderChange record. A snapshot begins
with a header and ends with a footer.
"""

from collections.abc import Sequence

from quire.protocol.codec import decode, encode
from quire.protocol.errors import ProtocolError
from quire.protocol.messages.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from quire.protocol.records import ControlRecordType, Record, build_control_batch, control_type
from quire.raft.control_state import Control
from quire.raft.effects import StartOfEpoch
from quire.raft.replicas import VoterSet

Controls = list[tuple[ControlRecordType, bytes]]


def read_control(records: Sequence[Record]) -> Control:
    """What the records of one control batch change."""
    kraft_version: int | None = None
    voters: VoterSet | None = None
    for record in records:
        match control_type(record):
            case ControlRecordType.KRAFT_VERSION:
                kraft_version = decode(KRaftVersionRecord, record.value or b"", 0).k_raft_version
            case ControlRecordType.KRAFT_VOTERS:
                voters = VoterSet.from_record(decode(VotersRecord, record.value or b"", 0))
            case _:
                pass
    return Control(kraft_version, voters)


def control_batch(control: Control, *, base_offset: int, epoch: int, now_ms: int) -> bytearray:
    """A change of the version, of the voters, or of both."""
    return build_control_batch(_controls(control), now_ms, base_offset=base_offset, leader_epoch=epoch)


def _controls(control: Control) -> Controls:
    controls: Controls = []
    if control.kraft_version is not None:
        record = KRaftVersionRecord(k_raft_version=control.kraft_version)
        controls.append((ControlRecordType.KRAFT_VERSION, encode(record, 0)))
    if control.voters is not None:
        controls.append((ControlRecordType.KRAFT_VOTERS, encode(control.voters.to_record(), 0)))
    return controls


def start_of_epoch(start: StartOfEpoch, kraft_version: int, *, base_offset: int, epoch: int, now_ms: int) -> bytearray:
    """A new leader's first batch, as Kafka writes it."""
    change = LeaderChangeMessage(
        leader_id=start.leader_id,
        voters=[LeaderChangeMessageVoter(voter_id=voter.key.id) for voter in start.voters],
        granting_voters=[LeaderChangeMessageVoter(voter_id=key.id) for key in start.granting],
    )
    controls: Controls = [(ControlRecordType.LEADER_CHANGE, encode(change, 0))]
    if start.with_voters:
        controls += quorum_controls(kraft_version, start.voters)
    assert len(controls) == start.record_count
    return build_control_batch(controls, now_ms, base_offset=base_offset, leader_epoch=epoch)


def quorum_controls(kraft_version: int, voters: VoterSet) -> Controls:
    """Version and voters; the static quorums of version 0 have neither in the log."""
    if kraft_version < 1:
        return []
    return _controls(Control(kraft_version, voters))


def snapshot_header(last_contained_log_timestamp: int) -> tuple[ControlRecordType, bytes]:
    record = SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_log_timestamp)
    return ControlRecordType.SNAPSHOT_HEADER, encode(record, 0)


def snapshot_footer() -> tuple[ControlRecordType, bytes]:
    return ControlRecordType.SNAPSHOT_FOOTER, encode(SnapshotFooterRecord(), 0)


def header_timestamp(record: Record) -> int:
    """The last contained timestamp in a snapshot's header; ProtocolError if it is not a header."""
    if control_type(record) is not ControlRecordType.SNAPSHOT_HEADER:
        raise ProtocolError("a snapshot begins with a header")
    return decode(SnapshotHeaderRecord, record.value or b"", 0).last_contained_log_timestamp

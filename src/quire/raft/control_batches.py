"""The control records of the metadata log: who leads, which version of the consensus, who votes.

They are raft's own and never reach the image. A leader writes LeaderChange first thing in its epoch; a snapshot begins
with a header and ends with a footer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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
from quire.raft.effects import StartOfEpoch
from quire.raft.replicas import VoterSet

Controls = list[tuple[ControlRecordType, bytes]]


@dataclass(slots=True)
class ControlState:
    """What control records have said so far; later ones take the place of earlier ones."""

    kraft_version: int = 0
    voters: VoterSet | None = None

    def read(self, records: Sequence[Record]) -> None:
        """Takes in the records of one control batch."""
        for record in records:
            match control_type(record):
                case ControlRecordType.KRAFT_VERSION:
                    self.kraft_version = decode(KRaftVersionRecord, record.value or b"", 0).k_raft_version
                case ControlRecordType.KRAFT_VOTERS:
                    self.voters = VoterSet.from_record(decode(VotersRecord, record.value or b"", 0))
                case _:
                    pass


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
    return [
        (ControlRecordType.KRAFT_VERSION, encode(KRaftVersionRecord(k_raft_version=kraft_version), 0)),
        (ControlRecordType.KRAFT_VOTERS, encode(voters.to_record(), 0)),
    ]


def snapshot_header(last_contained_log_timestamp: int) -> tuple[ControlRecordType, bytes]:
    record = SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_log_timestamp)
    return ControlRecordType.SNAPSHOT_HEADER, encode(record, 0)


def snapshot_footer() -> tuple[ControlRecordType, bytes]:
    return ControlRecordType.SNAPSHOT_FOOTER, encode(SnapshotFooterRecord(), 0)


def header_timestamp(record: Record) -> int:
    """The last contained timestamp in a snapshot's header; ProtocolError if it is no header."""
    if control_type(record) is not ControlRecordType.SNAPSHOT_HEADER:
        raise ProtocolError("a snapshot begins with a header")
    return decode(SnapshotHeaderRecord, record.value or b"", 0).last_contained_log_timestamp

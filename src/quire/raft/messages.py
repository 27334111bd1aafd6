"""What replicas say to each other, without the wrapping of the wire.

One class per message of KRaft; the wire has them as Vote, BeginQuorumEpoch, EndQuorumEpoch and Fetch, each nested in a
list of topics of which there is always one. Every message carries its sender's epoch: whoever is behind learns of it.
"""

from typing import NamedTuple

from quire.raft.log_summary import LogPosition
from quire.raft.replicas import ReplicaKey


class VoteRequest(NamedTuple):
    """May I lead `epoch`? A pre-vote (KIP-996) asks whether it is worth asking, and binds nobody."""

    epoch: int
    candidate: ReplicaKey
    last: LogPosition
    pre_vote: bool = False


class VoteAnswer(NamedTuple):
    epoch: int
    leader_id: int | None
    granted: bool
    pre_vote: bool = False


class BeginEpoch(NamedTuple):
    """I lead `epoch`: fetch from me."""

    epoch: int
    leader_id: int


class EndEpoch(NamedTuple):
    """I lead `epoch` no longer; elect one of you, best placed first."""

    epoch: int
    leader_id: int
    successors: tuple[int, ...]


class EpochAnswer(NamedTuple):
    """The answer to BeginEpoch and EndEpoch."""

    epoch: int
    leader_id: int | None


class FetchRequest(NamedTuple):
    """My log ends, durably, at `offset` after a record of `last_epoch`: what follows, or where do we differ?"""

    epoch: int
    replica: ReplicaKey
    offset: int
    last_epoch: int
    high_watermark: int = -1
    max_wait_ms: int = 0

    @property
    def asked_at(self) -> LogPosition:
        return LogPosition(self.last_epoch, self.offset)


class Batch(NamedTuple):
    """A record batch: one or more records that are committed together, in bytes that the machine never looks into."""

    base_offset: int
    next_offset: int
    epoch: int
    payload: object


class FetchAnswer(NamedTuple):
    """Records from where the asker's log ends; or where the logs part; or the snapshot to start from; or who leads.

    `asked_at` is the end of the log that asked, so that an answer which comes late, to a log that has moved on, is
    known for what it is. A fenced answer says only who leads.
    """

    epoch: int
    leader_id: int | None
    asked_at: LogPosition
    high_watermark: int = -1
    diverging: LogPosition | None = None
    snapshot: LogPosition | None = None
    batches: tuple[Batch, ...] = ()
    fenced: bool = False


Message = VoteRequest | VoteAnswer | BeginEpoch | EndEpoch | EpochAnswer | FetchRequest | FetchAnswer

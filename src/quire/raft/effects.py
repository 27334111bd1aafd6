"""What the state machine takes in and gives out.

An event happened; an effect is to be carried out, in the order given. That order is a promise to peers: a vote is on
disk before it is sent, a batch is in the log before anyone is told of it.
"""

from typing import NamedTuple

from quire.raft.log_summary import LogPosition
from quire.raft.messages import Batch, FetchRequest, Message
from quire.raft.quorum_state import Election
from quire.raft.replicas import ReplicaKey, VoterSet

# --- events


class Tick(NamedTuple):
    """The deadline the machine asked for has come."""


class Received(NamedTuple):
    """A message from node `sender`."""

    sender: int
    message: Message


class Unreachable(NamedTuple):
    """A request to `peer` went unanswered: no connection, or no answer in time."""

    peer: int


class Propose(NamedTuple):
    """The state machine above wants `record_count` records, encoded in `payload`, in the log as one batch."""

    record_count: int
    payload: object


class LogSynced(NamedTuple):
    """Everything below `offset` is on disk."""

    offset: int


class SnapshotInstalled(NamedTuple):
    """The snapshot a leader named is here, whole, in place of the log."""

    position: LogPosition


class LogCleaned(NamedTuple):
    """A snapshot up to `position` exists and the log before it is gone."""

    position: LogPosition


class Resign(NamedTuple):
    """This node is stopping: whoever follows should not have to wait to notice."""


Event = Tick | Received | Unreachable | Propose | LogSynced | SnapshotInstalled | LogCleaned | Resign

# --- effects


class PersistElection(NamedTuple):
    """Write `quorum-state` and sync it, before anything that follows."""

    election: Election


class Append(NamedTuple):
    """Write a batch at the end of the log."""

    batch: Batch


class SyncLog(NamedTuple):
    """Bring the log to disk up to `offset`, in the background, and report LogSynced; one sync may serve several."""

    offset: int


class Truncate(NamedTuple):
    """Cut the log at `offset`: what follows was never committed."""

    offset: int


class Send(NamedTuple):
    to: int
    message: Message


class AnswerFetch(NamedTuple):
    """Send node `to` the batches from `request.offset` on, as many as fit; there may be none."""

    to: int
    request: FetchRequest
    epoch: int
    high_watermark: int


class InstallSnapshot(NamedTuple):
    """Fetch the snapshot at `position` from `leader_id`, put it in place of the log and report SnapshotInstalled."""

    leader_id: int
    position: LogPosition


class HighWatermark(NamedTuple):
    """Everything below `offset` is committed."""

    offset: int


class LeaderChanged(NamedTuple):
    """Whom this node follows from here on: itself, another, or nobody yet."""

    leader_id: int | None
    epoch: int


class StartOfEpoch(NamedTuple):
    """The payload of a new leader's first batch: a LeaderChange control record.

    The first leader of a log also copies the version and the voters it was formatted with into the log, so that the
    log alone says who votes.
    """

    leader_id: int
    voters: VoterSet
    granting: tuple[ReplicaKey, ...]
    with_voters: bool

    @property
    def record_count(self) -> int:
        return 3 if self.with_voters else 1


Effect = (
    PersistElection | Append | SyncLog | Truncate | Send | AnswerFetch | InstallSnapshot | HighWatermark | LeaderChanged
)

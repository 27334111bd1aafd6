"""What the state machine takes in and gives out.

An event happened; an effect is to be carried out, in the order given. That order is a promise to peers: a vote is on
disk before it is sent, a batch is in the log before anyone is told of it.
"""

from dataclasses import dataclass

from quire.raft.log_summary import LogPosition
from quire.raft.messages import Batch, FetchRequest, Message
from quire.raft.quorum_state import Election
from quire.raft.replicas import ReplicaKey, VoterSet

# --- events


@dataclass(frozen=True, slots=True)
class Tick:
    """The deadline the machine asked for has come."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message from node `sender`."""

    sender: int
    message: Message


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A request to `peer` went unanswered: no connection, or no answer in time."""

    peer: int


@dataclass(frozen=True, slots=True)
class Propose:
    """The state machine above wants `count` records, encoded in `payload`, in the log as one batch."""

    count: int
    payload: object


@dataclass(frozen=True, slots=True)
class LogSynced:
    """Everything below `offset` is on disk."""

    offset: int


@dataclass(frozen=True, slots=True)
class SnapshotInstalled:
    """The snapshot a leader named is here, whole, in place of the log."""

    position: LogPosition


@dataclass(frozen=True, slots=True)
class LogCleaned:
    """A snapshot up to `position` exists and the log before it is gone."""

    position: LogPosition


@dataclass(frozen=True, slots=True)
class Resign:
    """This node is stopping: whoever follows should not have to wait to notice."""


Event = Tick | Received | Unreachable | Propose | LogSynced | SnapshotInstalled | LogCleaned | Resign

# --- effects


@dataclass(frozen=True, slots=True)
class PersistElection:
    """Write `quorum-state` and sync it, before anything that follows."""

    election: Election


@dataclass(frozen=True, slots=True)
class Append:
    """Write a batch at the end of the log."""

    batch: Batch


@dataclass(frozen=True, slots=True)
class SyncLog:
    """Bring the log to disk up to `offset`, in the background, and report LogSynced; one sync may serve several."""

    offset: int


@dataclass(frozen=True, slots=True)
class Truncate:
    """Cut the log at `offset`: what follows was never committed."""

    offset: int


@dataclass(frozen=True, slots=True)
class Send:
    to: int
    message: Message


@dataclass(frozen=True, slots=True)
class AnswerFetch:
    """Send node `to` the batches from `request.offset` on, as many as fit; there may be none."""

    to: int
    request: FetchRequest
    epoch: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class InstallSnapshot:
    """Fetch the snapshot at `position` from `leader_id`, put it in place of the log and report SnapshotInstalled."""

    leader_id: int
    position: LogPosition


@dataclass(frozen=True, slots=True)
class HighWatermark:
    """Everything below `offset` is committed."""

    offset: int


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """Whom this node follows from here on: itself, another, or nobody yet."""

    leader_id: int | None
    epoch: int


@dataclass(frozen=True, slots=True)
class StartOfEpoch:
    """The payload of a new leader's first batch: a LeaderChange control record.

    The first leader of a log also copies the version and the voters it was formatted with into the log, so that the
    log alone says who votes.
    """

    leader_id: int
    voters: VoterSet
    granting: tuple[ReplicaKey, ...]
    with_voters: bool

    @property
    def count(self) -> int:
        return 3 if self.with_voters else 1


Effect = (
    PersistElection | Append | SyncLog | Truncate | Send | AnswerFetch | InstallSnapshot | HighWatermark | LeaderChanged
)

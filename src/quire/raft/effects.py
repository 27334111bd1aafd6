"""The input and the output of the state machine: events that happened, and effects that its caller must carry out.

The order of effects is part of the protocol: a vote is on disk before it is sent, and a batch is in the log before a
message mentions it.
"""

from typing import NamedTuple

from quire.protocol.errors import ErrorCode
from quire.raft.control_state import ControlState
from quire.raft.log_summary import LogPosition
from quire.raft.messages import Batch, FetchRequest, Message
from quire.raft.quorum_state import Election
from quire.raft.replicas import ReplicaKey, VoterSet
from quire.raft.voter_changes import VoterChange

# --- Events


class Tick(NamedTuple):
    """The deadline that the machine set has passed."""


class Received(NamedTuple):
    """A message from node `sender`."""

    sender: int
    message: Message


class Unreachable(NamedTuple):
    """A request to `peer` went unanswered: no connection, or no answer in time. `fetch` is the number of a fetch."""

    peer: int
    fetch: int | None = None


class ConnectionLost(NamedTuple):
    """An established connection to `peer` closed, with or without a request on it: its process may have ended."""

    peer: int


class Propose(NamedTuple):
    """Append `record_count` records, encoded in `payload`, to the log as one batch."""

    record_count: int
    payload: object


class LogSynced(NamedTuple):
    """Everything below `offset` is on disk; `cuts` is that of the SyncLog which is done."""

    offset: int
    cuts: int


class SnapshotPartFetched(NamedTuple):
    """A part of the snapshot that FetchSnapshot asked for arrived: the leader is alive."""

    position: LogPosition


class SnapshotFetched(NamedTuple):
    """The snapshot that FetchSnapshot asked for is whole, checked and on disk; the log is as it was."""

    position: LogPosition
    control: ControlState


class SnapshotRequested(NamedTuple):
    """A replica fetches (a part of) a snapshot from this leader in its epoch."""

    replica: ReplicaKey


class LogCleaned(NamedTuple):
    """A snapshot up to `position` exists and the log before it is gone."""

    position: LogPosition


class ChangeVoters(NamedTuple):
    """Change the voters, or the version of KRaft. The answer is VotersChanged with the same `request_id`."""

    request_id: int
    change: VoterChange
    until_committed: bool = True
    """Otherwise the answer comes as soon as the change is in the leader's log."""


class CheckLeadership(NamedTuple):
    """Find out whether this replica still leads. The answer is LeadershipChecked with the same `request_id`."""

    request_id: int


class Resign(NamedTuple):
    """This node is stopping: the others should elect a leader without waiting for a timeout."""


RaftEvent = (
    Tick
    | Received
    | Unreachable
    | ConnectionLost
    | Propose
    | LogSynced
    | SnapshotPartFetched
    | SnapshotFetched
    | SnapshotRequested
    | LogCleaned
    | ChangeVoters
    | CheckLeadership
    | Resign
)

# --- Effects


class PersistElection(NamedTuple):
    """Write `quorum-state` and sync it, before anything that follows."""

    election: Election


class Append(NamedTuple):
    """Write a batch at the end of the log."""

    batch: Batch


class SyncLog(NamedTuple):
    """Sync the log up to `offset` in the background and report LogSynced; one sync may serve several of these.

    It must begin after the effects before this one, truncations included. `cuts` is only reported back.
    """

    offset: int
    cuts: int


class Truncate(NamedTuple):
    """Cut the log at `offset`, because what follows was never committed; a SyncLog follows."""

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


class FetchSnapshot(NamedTuple):
    """Fetch the snapshot at `position` from `leader_id` and report SnapshotFetched; Unreachable if that fails.

    If the shell already has the snapshot, or part of it, it continues with what it has.
    """

    leader_id: int
    position: LogPosition


class RestartLog(NamedTuple):
    """Replace the log by the fetched snapshot at `position`; a SyncLog follows."""

    position: LogPosition


class HighWatermark(NamedTuple):
    """Everything below `offset` is committed."""

    offset: int


class LeaderChanged(NamedTuple):
    """The leader from now on: this node, another one, or None while it is unknown."""

    leader_id: int | None
    epoch: int


class VotersChanged(NamedTuple):
    """The answer to ChangeVoters: the change is committed, or refused with Kafka's error."""

    request_id: int
    error: ErrorCode
    message: str = ""


class LeadershipChecked(NamedTuple):
    """The answer to CheckLeadership: whether no other replica had led a later epoch when the check was asked for.

    If so, the high watermark covers everything that was committed by then, in whatever epoch.
    """

    request_id: int
    leads: bool


class StartOfEpoch(NamedTuple):
    """The payload of a new leader's first batch: a LeaderChange control record.

    The first leader of a log also copies the version and the voters it was formatted with into the log, so that the
    log alone names them.
    """

    leader_id: int
    voters: VoterSet
    granting: tuple[ReplicaKey, ...]
    with_voters: bool

    @property
    def record_count(self) -> int:
        return 3 if self.with_voters else 1


Effect = (
    PersistElection
    | Append
    | SyncLog
    | Truncate
    | Send
    | AnswerFetch
    | FetchSnapshot
    | RestartLog
    | HighWatermark
    | LeaderChanged
    | VotersChanged
    | LeadershipChecked
)

"""The messages between replicas, without their form on the wire.

One class per message of KRaft. On the wire they are Vote, BeginQuorumEpoch, EndQuorumEpoch and Fetch, each nested in a
list of exactly one topic. Every message carries its sender's epoch, from which a replica learns that it is behind. An
answer carries Kafka's error code of the partition; whatever the error, its epoch and leader count.
"""

from typing import NamedTuple

from quire.protocol.errors import ErrorCode
from quire.raft.control_state import Control
from quire.raft.log_summary import LogPosition
from quire.raft.replicas import ReplicaKey


class VoteRequest(NamedTuple):
    """Asks for a vote in `epoch`. A pre-vote (KIP-996) asks whether an election could succeed, and binds no voter.

    `voter` is the key under which the candidate knows the receiver; None if the wire has none.
    """

    epoch: int
    candidate: ReplicaKey
    last: LogPosition
    pre_vote: bool = False
    voter: ReplicaKey | None = None

    @property
    def is_possible(self) -> bool:
        """No replica has records of an epoch that it only now asks to lead."""
        newest = self.epoch if self.pre_vote else self.epoch - 1
        return self.candidate.id >= 0 and self.last.epoch <= newest


class VoteAnswer(NamedTuple):
    """`pre_vote` is that of the request; the wire does not carry it."""

    epoch: int
    leader_id: int | None
    granted: bool
    pre_vote: bool = False
    error: ErrorCode = ErrorCode.NONE


class BeginEpoch(NamedTuple):
    """I lead `epoch`: fetch from me. `voter` is the key under which the leader knows the receiver.

    `check` is the number of a round of `LeadershipChecks`. The wire does not carry it.
    """

    epoch: int
    leader_id: int
    voter: ReplicaKey | None = None
    check: int = 0


class EndEpoch(NamedTuple):
    """I lead `epoch` no longer; elect one of you, the one with the longest log first."""

    epoch: int
    leader_id: int
    successors: tuple[ReplicaKey, ...]


class EpochAnswer(NamedTuple):
    """The answer to BeginEpoch and EndEpoch. `check` is that of the request; the wire does not carry it."""

    epoch: int
    leader_id: int | None
    error: ErrorCode = ErrorCode.NONE
    check: int = 0


class FetchRequest(NamedTuple):
    """My log ends, durably, at `offset` after a record of `last_epoch`: what follows, or where do we differ?

    `number` is different for each fetch of a replica since it started. The wire does not carry it.
    """

    epoch: int
    replica: ReplicaKey
    offset: int
    last_epoch: int
    high_watermark: int = -1
    max_wait_ms: int = 0
    number: int = 0

    @property
    def asked_at(self) -> LogPosition:
        return LogPosition(self.last_epoch, self.offset)


class Batch(NamedTuple):
    """A record batch: records that are committed together, in bytes that the machine never reads.

    `control` is what a control batch says about version and voters; the shell fills it in for batches that it receives.
    """

    base_offset: int
    next_offset: int
    epoch: int
    payload: object
    control: Control | None = None


class FetchAnswer(NamedTuple):
    """Records from the end of the follower's log; or where the logs diverge; or the snapshot to fetch; or an error.

    `number` is that of the request, so that an answer to an earlier fetch is recognised; the wire does not carry it. An
    answer with an error only names epoch and leader.
    """

    epoch: int
    leader_id: int | None
    number: int
    high_watermark: int = -1
    diverging: LogPosition | None = None
    snapshot: LogPosition | None = None
    batches: tuple[Batch, ...] = ()
    error: ErrorCode = ErrorCode.NONE


Message = VoteRequest | VoteAnswer | BeginEpoch | EndEpoch | EpochAnswer | FetchRequest | FetchAnswer

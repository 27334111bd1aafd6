"""The events of a quorum in plain words: the lines of the transcripts."""

from collections.abc import Sequence

from quire.protocol.errors import ErrorCode
from quire.raft.control_state import Control
from quire.raft.effects import (
    AnswerFetch,
    Append,
    Effect,
    FetchSnapshot,
    HighWatermark,
    LeaderChanged,
    LeadershipChecked,
    PersistElection,
    RestartLog,
    Send,
    StartOfEpoch,
    Truncate,
    VotersChanged,
)
from quire.raft.messages import (
    Batch,
    BeginEpoch,
    EndEpoch,
    EpochAnswer,
    FetchAnswer,
    FetchRequest,
    Message,
    VoteAnswer,
    VoteRequest,
)


def log_in_words(batches: Sequence[Batch]) -> str:
    return " ".join(f"{batch.base_offset}:{_payload(batch)}@{batch.epoch}" for batch in batches) or "empty"


def tell(effect: Effect) -> str:
    match effect:
        case PersistElection(election):
            voted = f", voted {election.voted.id}" if election.voted else ""
            leader = f", leader {election.leader_id}" if election.leader_id is not None else ""
            return f"persists epoch {election.epoch}{voted}{leader}"
        case Append(batch):
            return f"appends {log_in_words([batch])}"
        case Truncate(offset):
            return f"truncates to {offset}"
        case Send(to, message):
            return f"-> {to} {_say(message)}"
        case AnswerFetch(to, request, epoch, high_watermark):
            return f"-> {to} records from {request.offset}, epoch {epoch}, high watermark {high_watermark}"
        case FetchSnapshot(leader_id, position):
            return f"-> {leader_id} fetch the snapshot up to {position.offset}"
        case RestartLog(position):
            return f"restarts its log at {position.offset} of epoch {position.epoch}"
        case HighWatermark(offset):
            return f"knows {offset} committed"
        case LeaderChanged(leader_id, epoch):
            return f"leader of epoch {epoch}: {'unknown' if leader_id is None else leader_id}"
        case VotersChanged(_, error, message):
            return f"refuses the change: {error.name}: {message}" if error else "has made the change"
        case LeadershipChecked(_, leads):
            return "still led when it was asked" if leads else "does not lead"
    return ""


def _payload(batch: Batch) -> str:
    match batch.payload:
        case StartOfEpoch(with_voters=with_voters):
            return "leader-change" + ("+" + _voters(batch.control) if with_voters else "")
        case Control():
            return _voters(batch.control)
    return str(batch.payload)


def _voters(control: Control | None) -> str:
    assert control is not None and control.voters is not None
    version = "" if control.kraft_version is None else f"kraft.version={control.kraft_version},"
    return f"{version}voters={','.join(map(str, control.voters.ids))}"


def _say(message: Message) -> str:
    match message:
        case VoteRequest(epoch, _, last, pre_vote):
            asked = "would you vote" if pre_vote else "vote"
            return f"{asked} for me in epoch {epoch}? my log ends at {last.offset} of epoch {last.epoch}"
        case VoteAnswer(epoch, leader_id, granted, error=error):
            return f"{'yes' if granted else 'no'}, epoch {epoch}{_led_by(leader_id)}{_error(error)}"
        case BeginEpoch(epoch, check=check):
            return f"I lead epoch {epoch}{_check(check)}"
        case EndEpoch(epoch, _, successors):
            return f"I leave epoch {epoch}, next are {', '.join(str(key.id) for key in successors)}"
        case EpochAnswer(epoch, leader_id, error, check):
            return f"noted, epoch {epoch}{_led_by(leader_id)}{_error(error)}{_check(check)}"
        case FetchRequest(epoch, _, offset, last_epoch, high_watermark):
            return f"fetch from {offset} after epoch {last_epoch}, in epoch {epoch}, knowing {high_watermark} committed"
        case FetchAnswer(epoch, leader_id, _, diverging=diverging, snapshot=snapshot, error=error):
            if diverging is not None:
                return f"we agree up to {diverging.offset} of epoch {diverging.epoch}"
            if snapshot is not None:
                return f"start from the snapshot up to {snapshot.offset} of epoch {snapshot.epoch}"
            return f"not from me, epoch {epoch}{_led_by(leader_id)}{_error(error)}"


def _led_by(leader_id: int | None) -> str:
    return "" if leader_id is None else f" is led by {leader_id}"


def _check(number: int) -> str:
    return f", check {number}" if number else ""


def _error(error: ErrorCode) -> str:
    return f" ({error.name})" if error else ""

"""What a leader counts as committed, and which requests it answers."""

from quire.raft.control_state import ControlHistory
from quire.raft.core import RaftCore
from quire.raft.effects import (
    AnswerFetch,
    Effect,
    HighWatermark,
    LogSynced,
    Propose,
    Received,
    Resign,
    Send,
    SnapshotRequested,
    Tick,
)
from quire.raft.log_summary import LogPosition, LogSummary
from quire.raft.messages import EpochAnswer, FetchAnswer, FetchRequest, VoteAnswer
from quire.raft.quorum_state import Election
from quire.raft.replicas import ReplicaKey, Voter, VoterSet
from simulator.random import SimRandom


def leader_of_three(log: LogSummary) -> RaftCore:
    return leader(RaftCore(ReplicaKey(1), static(VoterSet.of_ids([1, 2, 3])), log, SimRandom(1)))


def static(voters: VoterSet) -> ControlHistory:
    return ControlHistory(static_voters=voters)


def leader(core: RaftCore) -> RaftCore:
    """A leader that node 2 elected in the epoch after the last one in the log."""
    core.start(Election(core.log.last.epoch), 0)
    core.step(Tick(), core.deadline_ms)
    core.step(Received(2, VoteAnswer(core.epoch, None, granted=True, pre_vote=True)), 0)
    core.step(Received(2, VoteAnswer(core.epoch, None, granted=True)), 0)
    assert core.is_leader
    return core


def log_with_one_record_of_epoch_1() -> LogSummary:
    log = LogSummary()
    log.append(1, 0, 1)
    log.sync(1, 0)
    return log


def fetch(core: RaftCore, replica: int, offset: int, last_epoch: int, now_ms: float = 0) -> list[Effect]:
    return core.step(Received(replica, FetchRequest(core.epoch, ReplicaKey(replica), offset, last_epoch)), now_ms)


def high_watermarks(effects: list[Effect]) -> list[int]:
    return [effect.offset for effect in effects if isinstance(effect, HighWatermark)]


def test_a_record_of_an_earlier_epoch_is_committed_only_through_one_of_this_epoch() -> None:
    core = leader_of_three(log_with_one_record_of_epoch_1())
    core.step(LogSynced(2, 0), 0)
    assert high_watermarks(fetch(core, 2, 1, 1)) == []
    assert high_watermarks(fetch(core, 2, 2, 2)) == [2]


def test_the_leaders_own_log_counts_only_when_synced() -> None:
    core = leader_of_three(LogSummary())
    assert high_watermarks(fetch(core, 2, 1, 1)) == []
    assert high_watermarks(core.step(LogSynced(1, 0), 0)) == [1]
    core.step(Propose(1, "x"), 0)
    assert high_watermarks(fetch(core, 2, 2, 1)) == []
    assert high_watermarks(core.step(LogSynced(2, 0), 0)) == [2]


def test_followers_alone_can_commit_before_the_leader_has_synced() -> None:
    core = leader_of_three(LogSummary())
    fetch(core, 2, 1, 1)
    assert high_watermarks(fetch(core, 3, 1, 1)) == [1]


def test_an_observer_is_answered_but_commits_nothing() -> None:
    core = leader_of_three(LogSummary())
    core.step(LogSynced(1, 0), 0)
    effects = fetch(core, 9, 1, 1)
    assert high_watermarks(effects) == []
    assert [effect.to for effect in effects if isinstance(effect, AnswerFetch)] == [9]
    assert [observer.key.id for observer in core.view().observers] == [9]


def test_a_voter_that_came_back_with_another_directory_does_not_count() -> None:
    old, new = b"a" * 16, b"b" * 16
    voters = VoterSet(Voter(ReplicaKey(id_, old)) for id_ in (1, 2, 3))
    core = leader(RaftCore(ReplicaKey(1, old), static(voters), LogSummary(), SimRandom(1)))
    core.step(LogSynced(1, 0), 0)
    request = FetchRequest(core.epoch, ReplicaKey(2, new), 1, 1)
    assert high_watermarks(core.step(Received(2, request), 0)) == []
    assert [observer.key for observer in core.view().observers] == [ReplicaKey(2, new)]


def test_a_fetch_waits_for_records_and_is_answered_by_the_next_append() -> None:
    core = leader_of_three(LogSummary())
    patient = FetchRequest(core.epoch, ReplicaKey(2), 1, 1, high_watermark=1, max_wait_ms=500)
    assert not [effect for effect in core.step(Received(2, patient), 0) if isinstance(effect, AnswerFetch)]
    effects = core.step(Propose(1, "x"), 10)
    assert [effect.to for effect in effects if isinstance(effect, AnswerFetch)] == [2]


def test_a_fetch_is_answered_empty_when_it_has_waited_long_enough() -> None:
    core = leader_of_three(LogSummary())
    patient = FetchRequest(core.epoch, ReplicaKey(2), 1, 1, high_watermark=1, max_wait_ms=500)
    core.step(Received(2, patient), 0)
    assert core.deadline_ms == 500
    effects = core.step(Tick(), 500)
    assert [effect.to for effect in effects if isinstance(effect, AnswerFetch)] == [2]


def test_a_fetch_waits_half_a_fetch_timeout_at_most() -> None:
    core = leader_of_three(LogSummary())
    patient = FetchRequest(core.epoch, ReplicaKey(2), 1, 1, high_watermark=1, max_wait_ms=2**31 - 1)
    core.step(Received(2, patient), 0)
    effects = core.step(Tick(), 1_000)
    assert [effect.to for effect in effects if isinstance(effect, AnswerFetch)] == [2]


def test_the_progress_of_followers_is_seen() -> None:
    core = leader_of_three(LogSummary())
    core.step(LogSynced(1, 0), 0)
    fetch(core, 2, 0, 0, now_ms=10)
    fetch(core, 2, 1, 1, now_ms=20)
    core.step(Propose(1, "x"), 25)
    fetch(core, 2, 1, 1, now_ms=30)
    view = core.view()
    assert (view.leader_id, view.epoch, view.high_watermark) == (1, 1, 1)
    second = view.voters[1]
    assert (second.key.id, second.end_offset, second.fetched_at_ms, second.caught_up_at_ms) == (2, 1, 30, 20)


def resigns_after_3_seconds(core: RaftCore) -> bool:
    """With a fetch timeout of two seconds, the last fetch of a majority may be three seconds old."""
    core.step(Tick(), 3_000)
    return not core.is_leader


def test_a_leader_resigns_if_no_majority_fetches() -> None:
    core = leader_of_three(LogSummary())
    core.step(Received(2, EpochAnswer(1, 1)), 2_900)
    assert resigns_after_3_seconds(core), "other messages do not count"


def test_a_leader_stays_if_a_voter_fetches_even_a_log_that_diverges() -> None:
    core = leader_of_three(log_with_one_record_of_epoch_1())
    diverging = Received(2, FetchRequest(core.epoch, ReplicaKey(2), 9, 1))
    core.step(diverging, 2_900)
    assert not resigns_after_3_seconds(core)


def test_a_leader_stays_if_a_voter_fetches_a_snapshot() -> None:
    core = leader_of_three(LogSummary())
    core.step(SnapshotRequested(ReplicaKey(9)), 2_900)
    core.step(SnapshotRequested(ReplicaKey(3)), 2_900)
    assert not resigns_after_3_seconds(core)


def test_a_snapshot_requested_by_another_replica_does_not_count() -> None:
    core = leader_of_three(LogSummary())
    core.step(SnapshotRequested(ReplicaKey(9)), 2_900)
    assert resigns_after_3_seconds(core)


def test_a_follower_whose_epoch_is_older_than_the_snapshot_gets_the_snapshot() -> None:
    log = log_with_one_record_of_epoch_1()
    log.append(3, 1, 4)
    log.sync(4, 0)
    log.forget_before(LogPosition(3, 4))
    core = leader_of_three(log)
    effects = fetch(core, 2, 6, 2)
    [answer] = [effect.message for effect in effects if isinstance(effect, Send)]
    assert isinstance(answer, FetchAnswer)
    assert (answer.snapshot, answer.diverging) == (LogPosition(3, 4), None)


def test_fetches_that_wait_are_refused_when_the_leader_leaves() -> None:
    core = leader_of_three(LogSummary())
    patient = FetchRequest(core.epoch, ReplicaKey(2), 1, 1, high_watermark=1, max_wait_ms=500)
    core.step(Received(2, patient), 0)
    effects = core.step(Resign(), 10)
    refused = [effect for effect in effects if isinstance(effect, Send) and isinstance(effect.message, FetchAnswer)]
    assert [effect.to for effect in refused] == [2]

"""When a follower replaces its log, gives up on its leader, and votes."""

from typing import TypeVar

import pytest

from quire.protocol.errors import ErrorCode
from quire.raft.control_state import ControlHistory, ControlState
from quire.raft.core import RaftCore
from quire.raft.effects import (
    ConnectionLost,
    Effect,
    FetchSnapshot,
    HighWatermark,
    LogSynced,
    RaftEvent,
    Received,
    RestartLog,
    Send,
    SnapshotFetched,
    SnapshotPartFetched,
    SyncLog,
    Tick,
    Truncate,
    Unreachable,
)
from quire.raft.errors import MetadataLogError
from quire.raft.log_summary import LogPosition, LogSummary
from quire.raft.messages import Batch, BeginEpoch, EpochAnswer, FetchAnswer, FetchRequest, VoteAnswer, VoteRequest
from quire.raft.quorum_state import Election
from quire.raft.replicas import ReplicaKey, VoterSet
from quire.raft.roles.role import Kind
from simulator.random import SimRandom

M = TypeVar("M")
SNAPSHOT = LogPosition(4, 100)
LEADER, FOLLOWER, OTHER = 1, 2, 3


def log_of_epoch_1(end_offset: int = 10) -> LogSummary:
    log = LogSummary()
    log.append(1, 0, end_offset)
    log.sync(end_offset, 0)
    return log


class Machine:
    """Node 2 of three, a follower of node 1 in epoch 5."""

    def __init__(self, log: LogSummary | None = None) -> None:
        voters = ControlHistory(static_voters=VoterSet.of_ids([1, 2, 3]))
        self.core = RaftCore(ReplicaKey(FOLLOWER), voters, log or log_of_epoch_1(), SimRandom(1))
        self.now_ms = 0.0
        self.fetch_number = 0
        """Of the last fetch."""
        self._note_fetch(self.core.start(Election(5, LEADER), 0))

    def step(self, event: RaftEvent) -> list[Effect]:
        return self._note_fetch(self.core.step(event, self.now_ms))

    def _note_fetch(self, effects: list[Effect]) -> list[Effect]:
        for request in sent(effects, FetchRequest):
            self.fetch_number = request.number
        return effects

    def is_a(self, kind: Kind) -> bool:
        return self.core.kind is kind

    def wait(self, duration_ms: float) -> list[Effect]:
        self.now_ms += duration_ms
        return self.step(Tick())

    def answered(
        self,
        high_watermark: int = -1,
        diverging: LogPosition | None = None,
        snapshot: LogPosition | None = None,
        batches: tuple[Batch, ...] = (),
        error: ErrorCode = ErrorCode.NONE,
    ) -> list[Effect]:
        """The leader answers the fetch that is in flight."""
        answer = FetchAnswer(
            self.core.epoch, LEADER, self.fetch_number, high_watermark, diverging, snapshot, batches, error
        )
        return self.step(Received(LEADER, answer))

    def would_vote(self) -> bool:
        request = VoteRequest(self.core.epoch, ReplicaKey(OTHER), LogPosition(5, 999), pre_vote=True)
        return sent(self.step(Received(OTHER, request)), VoteAnswer)[0].granted


def sent(effects: list[Effect], kind: type[M]) -> list[M]:
    return [effect.message for effect in effects if isinstance(effect, Send) and isinstance(effect.message, kind)]


def test_a_snapshot_replaces_the_log_once_it_is_whole() -> None:
    machine = Machine()
    assert machine.answered(snapshot=SNAPSHOT) == [FetchSnapshot(LEADER, SNAPSHOT)]
    effects = machine.step(SnapshotFetched(SNAPSHOT, ControlState()))
    assert effects[:2] == [RestartLog(SNAPSHOT), SyncLog(100, 1)]
    assert not sent(effects, FetchRequest), "the log on disk is still the old one"
    assert sent(machine.step(LogSynced(100, 1)), FetchRequest)[0].asked_at == SNAPSHOT
    assert machine.core.high_watermark == 100


def test_a_snapshot_of_an_earlier_leader_changes_nothing() -> None:
    machine = Machine()
    machine.answered(snapshot=SNAPSHOT)
    machine.step(Received(OTHER, BeginEpoch(6, OTHER)))
    assert machine.step(SnapshotFetched(SNAPSHOT, ControlState())) == []
    assert machine.core.log.end_offset == 10


def test_a_snapshot_that_is_no_longer_needed_changes_nothing() -> None:
    machine = Machine()
    machine.answered(snapshot=SNAPSHOT)
    machine.step(Unreachable(LEADER))
    machine.wait(20)
    machine.answered(high_watermark=12, batches=(Batch(10, 12, 5, "x"),))
    assert machine.step(SnapshotFetched(SNAPSHOT, ControlState())) == []


def test_a_snapshot_below_what_is_committed_is_not_fetched() -> None:
    machine = Machine()
    machine.answered(high_watermark=10)
    assert machine.answered(snapshot=LogPosition(4, 10)) == []


def test_the_content_of_a_snapshot_is_committed_even_if_the_leader_does_not_know_it_yet() -> None:
    machine = Machine(LogSummary(start=SNAPSHOT, end_offset=100, synced_offset=100))
    assert machine.core.high_watermark == 100
    assert not [effect for effect in machine.answered(high_watermark=90) if isinstance(effect, HighWatermark)]
    voters = ControlHistory(static_voters=VoterSet.of_ids([1, 2, 3]))
    core = RaftCore(ReplicaKey(FOLLOWER), voters, log_of_epoch_1(), SimRandom(1), snapshot_offset=8)
    assert core.high_watermark == 8


def test_each_part_of_a_snapshot_shows_that_the_leader_is_alive() -> None:
    machine = Machine()
    machine.answered(snapshot=SNAPSHOT)
    for _ in range(5):
        machine.wait(1_500)
        machine.step(SnapshotPartFetched(SNAPSHOT))
    assert machine.is_a(Kind.FOLLOWER)
    machine.wait(2_000)
    assert machine.is_a(Kind.PROSPECTIVE)


def test_a_truncation_is_synced_before_the_next_fetch() -> None:
    machine = Machine()
    effects = machine.answered(diverging=LogPosition(1, 4))
    assert effects == [Truncate(4), SyncLog(4, 1)]
    assert machine.step(LogSynced(10, 0)) == [], "that sync began before the truncation"
    assert sent(machine.step(LogSynced(4, 1)), FetchRequest)[0].offset == 4


def test_a_voter_does_not_campaign_before_its_truncation_is_synced() -> None:
    machine = Machine()
    machine.answered(diverging=LogPosition(1, 4))
    machine.wait(2_000)
    assert machine.is_a(Kind.UNATTACHED)
    machine.step(LogSynced(4, 1))
    machine.wait(2_000)
    assert machine.is_a(Kind.PROSPECTIVE)


def test_a_divergence_that_leaves_nothing_to_truncate_is_not_repeated_at_once() -> None:
    machine = Machine()
    assert machine.answered(diverging=LogPosition(4, 50)) == []
    assert machine.core.log.end_offset == 10
    assert sent(machine.wait(20), FetchRequest)


def test_a_follower_that_fetches_refuses_pre_votes() -> None:
    machine = Machine()
    assert machine.would_vote(), "it has not reached its leader yet"
    machine.answered()
    assert not machine.would_vote()


def test_a_closed_connection_to_the_leader_starts_a_pre_vote() -> None:
    machine = Machine()
    machine.answered()
    machine.step(ConnectionLost(OTHER))
    assert not machine.would_vote()
    machine.step(ConnectionLost(LEADER))
    assert machine.would_vote()
    assert [request.pre_vote for request in sent(machine.wait(25), VoteRequest)] == [True, True]


def test_a_replica_whose_pre_vote_is_refused_follows_again() -> None:
    machine = Machine()
    machine.answered()
    machine.step(ConnectionLost(LEADER))
    machine.wait(25)
    machine.step(Unreachable(LEADER))
    effects = machine.step(Received(OTHER, VoteAnswer(5, LEADER, granted=False, pre_vote=True)))
    assert machine.is_a(Kind.FOLLOWER)
    assert sent(effects, FetchRequest)


def followed_again() -> tuple[Machine, int]:
    """A machine that gave up on its leader and follows it again, and the number of the fetch from before that."""
    machine = Machine()
    machine.answered()
    earlier = machine.fetch_number
    machine.step(ConnectionLost(LEADER))
    machine.wait(25)
    assert machine.is_a(Kind.PROSPECTIVE)
    machine.step(Received(LEADER, BeginEpoch(5, LEADER)))
    assert machine.is_a(Kind.FOLLOWER) and machine.fetch_number > earlier
    return machine, earlier


def test_an_answer_to_a_fetch_from_before_it_gave_up_starts_no_second_loop() -> None:
    machine, earlier = followed_again()
    assert machine.step(Received(LEADER, FetchAnswer(5, LEADER, earlier))) == []
    assert len(sent(machine.answered(), FetchRequest)) == 1


@pytest.mark.parametrize("lost", ["an earlier fetch", "another request"])
def test_only_the_loss_of_the_last_fetch_makes_it_fetch_again(lost: str) -> None:
    machine, earlier = followed_again()
    machine.step(Unreachable(LEADER, earlier if lost == "an earlier fetch" else None))
    assert not sent(machine.wait(20), FetchRequest), "the answer may still come"
    machine.step(Unreachable(LEADER, machine.fetch_number))
    assert len(sent(machine.wait(20), FetchRequest)) == 1


def test_a_fetch_that_succeeds_after_all_ends_the_doubt() -> None:
    machine = Machine()
    machine.step(ConnectionLost(LEADER))
    machine.answered()
    machine.wait(1_000)
    assert machine.is_a(Kind.FOLLOWER)


def test_a_leader_that_no_longer_leads_is_not_waited_for() -> None:
    machine = Machine()
    machine.answered()
    machine.answered(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert machine.would_vote()
    machine.wait(200)
    assert machine.is_a(Kind.PROSPECTIVE)


def test_requests_of_an_old_epoch_or_for_another_directory_are_refused() -> None:
    machine = Machine()
    [old] = sent(machine.step(Received(LEADER, BeginEpoch(4, LEADER))), EpochAnswer)
    assert (old.epoch, old.leader_id, old.error) == (5, LEADER, ErrorCode.FENCED_LEADER_EPOCH)
    meant_for = ReplicaKey(FOLLOWER, b"x" * 16)
    [wrong] = sent(machine.step(Received(OTHER, BeginEpoch(6, OTHER, meant_for))), EpochAnswer)
    assert (wrong.epoch, wrong.error) == (6, ErrorCode.INVALID_VOTER_KEY)
    assert machine.core.leader_id == OTHER, "the leader is still known"
    request = VoteRequest(7, ReplicaKey(OTHER), LogPosition(5, 999), voter=meant_for)
    [vote] = sent(machine.step(Received(OTHER, request)), VoteAnswer)
    assert (vote.epoch, vote.granted, vote.error) == (7, False, ErrorCode.INVALID_VOTER_KEY)


def test_fetches_are_refused_with_the_reason_and_the_leader() -> None:
    machine = Machine()
    answers = []
    for epoch in (4, 5, 6):
        request = FetchRequest(epoch, ReplicaKey(OTHER), 0, 0)
        answers += sent(machine.step(Received(OTHER, request)), FetchAnswer)
    assert [answer.error for answer in answers] == [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    ]
    assert {(answer.epoch, answer.leader_id) for answer in answers} == {(5, LEADER)}


def test_batches_that_do_not_continue_the_log_are_not_appended() -> None:
    gap, repeated = Batch(11, 12, 5, "gap"), Batch(9, 11, 5, "repeated")
    old, future = Batch(10, 11, 0, "old epoch"), Batch(10, 11, 6, "future epoch")
    for batch in (gap, repeated, old, future):
        machine = Machine()
        assert machine.answered(batches=(batch,)) == []
        assert machine.core.log.end_offset == 10
        assert sent(machine.wait(20), FetchRequest)


def test_votes_for_an_impossible_log_are_refused() -> None:
    machine = Machine()
    for request in (
        VoteRequest(7, ReplicaKey(OTHER), LogPosition(7, 999)),
        VoteRequest(7, ReplicaKey(OTHER), LogPosition(8, 999), pre_vote=True),
        VoteRequest(7, ReplicaKey(-1), LogPosition(5, 999)),
    ):
        [answer] = sent(machine.step(Received(OTHER, request)), VoteAnswer)
        assert (answer.granted, answer.error, answer.epoch) == (False, ErrorCode.INVALID_REQUEST, 5)


def test_a_response_of_an_earlier_epoch_does_not_extend_the_wait() -> None:
    machine = Machine()
    answer = FetchAnswer(machine.core.epoch - 1, None, machine.fetch_number)
    machine.step(Received(LEADER, answer))
    assert sent(machine.wait(20), FetchRequest), "the fetch is retried"


def test_a_leader_that_lost_committed_records_is_not_followed() -> None:
    machine = Machine()
    machine.answered(high_watermark=10)
    with pytest.raises(MetadataLogError, match="the leader lost committed records"):
        machine.answered(diverging=LogPosition(1, 4))
    assert machine.core.log.end_offset == 10

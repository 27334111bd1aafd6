"""When a leader changes the voters, and when the change is in force."""

import pytest

from quire.protocol.errors import ApiError, ErrorCode
from quire.raft.control_state import Control, ControlHistory, ControlState
from quire.raft.core import RaftCore
from quire.raft.effects import (
    Append,
    ChangeVoters,
    Effect,
    HighWatermark,
    LogSynced,
    RaftEvent,
    Received,
    Tick,
    VotersChanged,
)
from quire.raft.log_summary import LogSummary
from quire.raft.messages import FetchRequest, VoteAnswer
from quire.raft.quorum_state import Election
from quire.raft.replicas import ReplicaKey, Voter, VoterSet
from quire.raft.roles.role import Kind
from quire.raft.settings import QuorumSettings
from quire.raft.voter_changes import AddVoter, RemoveVoter, UpdateVoter, UpgradeKraftVersion, VoterChange
from simulator.random import SimRandom

NONE, NOT_YET = ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT

FETCH_TIMEOUT_MS = QuorumSettings().fetch_timeout_ms


def voter(id_: int) -> Voter:
    return Voter(ReplicaKey(id_, bytes([id_]) * 16))


class Machine:
    """Node 1 leads a quorum, by default in epoch 1 of nodes 1 to 3; its log ends at 3, or at 1 if that is static."""

    def __init__(self, control: ControlHistory | None = None) -> None:
        history = control or ControlHistory(ControlState(1, VoterSet(map(voter, (1, 2, 3)))))
        self.core = RaftCore(voter(1).key, history, LogSummary(), SimRandom(1))
        self.core.start(Election(), 0)
        self.now_ms = 0.0 if self.core.is_leader else self.core.deadline_ms
        self.step(Tick())
        self.step(Received(2, VoteAnswer(0, None, granted=True, pre_vote=True)))
        self.step(Received(2, VoteAnswer(1, None, granted=True)))
        assert self.core.is_leader

    def step(self, event: RaftEvent) -> list[Effect]:
        return self.core.step(event, self.now_ms)

    def has_log(self, id_: int) -> list[Effect]:
        """The node, or the leader itself, has all of the leader's log on disk."""
        last = self.core.log.last
        if id_ == 1:
            return self.step(LogSynced(last.offset, 0))
        return self.step(Received(id_, FetchRequest(self.core.epoch, voter(id_).key, last.offset, last.epoch)))

    def commit(self) -> "Machine":
        self.has_log(1)
        self.has_log(2)
        assert self.core.high_watermark == self.core.log.end_offset
        return self

    def change(self, change: VoterChange, *, until_committed: bool = True) -> list[Effect]:
        return self.step(ChangeVoters(7, change, until_committed))


def answers(effects: list[Effect]) -> list[ErrorCode]:
    return [effect.error for effect in effects if isinstance(effect, VotersChanged) and effect.request_id == 7]


def test_an_added_voter_counts_at_once_and_the_answer_waits_for_the_commit() -> None:
    machine = Machine().commit()
    machine.has_log(4)
    assert answers(machine.change(AddVoter(voter(4)))) == []
    assert machine.core.voters.ids == [1, 2, 3, 4]
    machine.has_log(1)
    assert answers(machine.has_log(2)) == [], "two of four are not a majority"
    assert answers(machine.has_log(4)) == [NONE]
    assert [each.key.id for each in machine.core.view().voters] == [1, 2, 3, 4]
    assert machine.core.view().observers == []


def test_an_answer_need_not_wait_for_the_commit() -> None:
    machine = Machine().commit()
    machine.has_log(4)
    assert answers(machine.change(AddVoter(voter(4)), until_committed=False)) == [NONE]


def test_a_node_that_has_not_caught_up_is_not_added() -> None:
    machine = Machine().commit()
    assert answers(machine.change(AddVoter(voter(4)))) == [NOT_YET]
    machine.step(Received(4, FetchRequest(1, voter(4).key, 0, 0)))
    assert answers(machine.change(AddVoter(voter(4)))) == [NOT_YET]
    machine.has_log(4)
    other_directory = Voter(ReplicaKey(4, b"x" * 16))
    assert answers(machine.change(AddVoter(other_directory))) == [NOT_YET]


def test_a_change_waits_for_a_commit_of_this_epoch() -> None:
    machine = Machine()
    assert answers(machine.change(RemoveVoter(voter(3).key))) == [NOT_YET]
    machine.commit()
    assert answers(machine.change(RemoveVoter(voter(3).key))) == []


def test_there_is_one_change_at_a_time() -> None:
    machine = Machine().commit()
    machine.change(RemoveVoter(voter(3).key))
    assert answers(machine.step(ChangeVoters(7, RemoveVoter(voter(2).key)))) == [NOT_YET]
    machine.has_log(1)
    assert answers(machine.has_log(2)) == [NONE]
    assert answers(machine.change(RemoveVoter(voter(2).key))) == []


def test_a_voter_is_not_removed_while_most_of_the_others_are_silent() -> None:
    """The removal could not be committed, and afterwards nothing could."""
    machine = Machine().commit()
    machine.now_ms += FETCH_TIMEOUT_MS + 1
    machine.has_log(2)
    before = machine.core.log.end_offset
    assert answers(machine.change(RemoveVoter(voter(2).key))) == [ErrorCode.INVALID_REQUEST], "node 3 is silent"
    assert answers(machine.change(RemoveVoter(voter(1).key))) == [ErrorCode.INVALID_REQUEST]
    assert machine.core.log.end_offset == before and machine.core.voters.ids == [1, 2, 3]
    assert answers(machine.change(RemoveVoter(voter(3).key))) == [], "the silent one may go"


def test_a_removed_voter_no_longer_counts() -> None:
    machine = Machine().commit()
    machine.change(RemoveVoter(voter(3).key))
    machine.has_log(1)
    assert not [effect for effect in machine.has_log(3) if isinstance(effect, HighWatermark)]
    assert [each.key.id for each in machine.core.view().observers] == [3]


def test_a_leader_that_removes_itself_leads_until_the_others_have_committed_it() -> None:
    machine = Machine().commit()
    machine.change(RemoveVoter(voter(1).key))
    machine.has_log(1)
    machine.has_log(2)
    assert machine.core.is_leader, "only one of the two voters that are left has it"
    assert answers(machine.has_log(3)) == [NONE]
    assert machine.core.kind is Kind.RESIGNED


def test_a_leader_that_loses_its_epoch_does_not_know_what_becomes_of_a_change() -> None:
    machine = Machine().commit()
    machine.change(RemoveVoter(voter(3).key))
    effects = machine.step(Received(2, VoteAnswer(9, None, granted=False)))
    assert answers(effects) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert answers(machine.change(RemoveVoter(voter(3).key))) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_the_voters_of_a_static_quorum_are_written_to_the_log_by_an_upgrade() -> None:
    machine = Machine(ControlHistory(static_voters=VoterSet.of_ids([1, 2, 3]))).commit()
    assert answers(machine.change(RemoveVoter(voter(3).key))) == [ErrorCode.UNSUPPORTED_VERSION]
    assert answers(machine.change(UpgradeKraftVersion(1))) == [ErrorCode.INVALID_UPDATE_VERSION]
    for id_ in (1, 2, 3):
        assert answers(machine.change(UpdateVoter(voter(id_)))) == [NONE]
    effects = machine.change(UpgradeKraftVersion(1))
    [append] = [effect for effect in effects if isinstance(effect, Append)]
    control = Control(1, VoterSet(map(voter, (1, 2, 3))))
    assert (append.batch.control, append.batch.payload) == (control, control)
    assert append.batch.next_offset - append.batch.base_offset == 2
    machine.has_log(1)
    assert answers(machine.has_log(2)) == [NONE]


def refusal_of_upgrade(machine: Machine) -> ErrorCode:
    """The effects of the leader before it is asked to upgrade."""
    before = machine.core.log.end_offset
    try:
        machine.core.check_upgrade(1)
    except ApiError as error:
        return error.code
    finally:
        assert machine.core.log.end_offset == before
    return NONE


def test_whether_an_upgrade_would_be_refused_is_known_before() -> None:
    machine = Machine(ControlHistory(static_voters=VoterSet.of_ids([1, 2, 3])))
    assert refusal_of_upgrade(machine) is ErrorCode.INVALID_UPDATE_VERSION
    for id_ in (1, 2, 3):
        machine.change(UpdateVoter(voter(id_)))
    assert refusal_of_upgrade(machine) is ErrorCode.REQUEST_TIMED_OUT, "nothing of this epoch is committed"
    machine.commit()
    assert refusal_of_upgrade(machine) is NONE
    machine.change(UpgradeKraftVersion(1))
    assert refusal_of_upgrade(machine) is NONE, "it has the version already"
    machine.step(Received(2, VoteAnswer(9, None, granted=False)))
    assert refusal_of_upgrade(machine) is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("directory", [b"x" * 16, bytes(16)])
def test_a_voter_with_another_directory_or_none_neither_campaigns_nor_counts(directory: bytes) -> None:
    voters = ControlHistory(ControlState(1, VoterSet(map(voter, (1, 2, 3)))))
    core = RaftCore(ReplicaKey(1, directory), voters, LogSummary(), SimRandom(1))
    core.start(Election(), 0)
    core.step(Tick(), 10_000)
    assert core.kind is Kind.UNATTACHED
    machine = Machine()
    machine.has_log(1)
    wiped = FetchRequest(1, ReplicaKey(2, directory), machine.core.log.end_offset, 1)
    assert not [effect for effect in machine.step(Received(2, wiped)) if isinstance(effect, HighWatermark)]


def test_a_leader_that_was_alone_still_leads_after_it_got_a_second_voter() -> None:
    machine = Machine(ControlHistory(ControlState(1, VoterSet([voter(1)]))))
    machine.has_log(1)
    machine.has_log(2)
    machine.now_ms += 60_000
    machine.change(AddVoter(voter(2)))
    assert list(machine.core.voters.ids) == [1, 2]
    machine.step(Tick())
    assert machine.core.is_leader, "an observer that becomes a voter counts as heard at that time"
    machine.has_log(1)
    assert answers(machine.has_log(2)) == [NONE]

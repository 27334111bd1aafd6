"""What the listener of the metadata log is reported of leaders, and when this node counts as the leader for it."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from quire.raft.core import RaftCore
from quire.raft.log_listener import ReportedLeader
from quire.raft.log_store import CommittedBatch
from quire.raft.snapshot_file import Snapshot
from quire.raft.snapshot_taker import SnapshotContent

OWN_ID = 1


class Listener:
    def __init__(self) -> None:
        self.leaders: list[tuple[int | None, int]] = []

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        self.leaders.append((leader_id, epoch))

    def committed(self, batches: Sequence[CommittedBatch]) -> None:
        pytest.fail("not about leaders")

    def prepare_snapshot(self, snapshot: Snapshot) -> Callable[[], None]:
        pytest.fail("not about leaders")

    def snapshot_content(self) -> SnapshotContent | None:
        pytest.fail("not about leaders")


def core(leader_id: int | None, epoch: int, epoch_start_offset: int = 0) -> RaftCore:
    """What `ReportedLeader` reads of the core."""
    state = SimpleNamespace(
        is_leader=leader_id == OWN_ID, leader_id=leader_id, epoch=epoch, epoch_start_offset=epoch_start_offset
    )
    return cast(RaftCore, state)


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def reported(listener: Listener) -> ReportedLeader:
    return ReportedLeader(OWN_ID, listener)


def test_each_leader_is_reported_once(listener: Listener, reported: ReportedLeader) -> None:
    for leader_id, epoch in ((2, 5), (2, 5), (None, 6), (2, 7)):
        reported.report(leader_id, epoch)
    assert listener.leaders == [(2, 5), (None, 6), (2, 7)]


def test_this_node_leads_for_the_listener_only_after_the_start_of_its_term_is_delivered(
    listener: Listener, reported: ReportedLeader
) -> None:
    leading = core(OWN_ID, 8, epoch_start_offset=40)
    reported.delivered(leading, 40)
    assert (listener.leaders, reported.is_this_node(leading)) == ([], False)
    reported.delivered(leading, 41)
    assert (listener.leaders, reported.is_this_node(leading)) == ([(OWN_ID, 8)], True)


def test_a_follower_does_not_report_itself(listener: Listener, reported: ReportedLeader) -> None:
    reported.delivered(core(2, 8), 41)
    assert listener.leaders == []


def test_the_end_of_a_term_is_reported_at_once(listener: Listener, reported: ReportedLeader) -> None:
    leading = core(OWN_ID, 8)
    reported.delivered(leading, 1)
    reported.end_term(leading)
    assert listener.leaders == [(OWN_ID, 8)], "the term has not ended"
    reported.end_term(core(3, 9))
    assert listener.leaders == [(OWN_ID, 8), (3, 9)]


def test_a_next_term_of_this_node_begins_without_a_leader(listener: Listener, reported: ReportedLeader) -> None:
    """The listener first has to get everything from before that term."""
    reported.delivered(core(OWN_ID, 8), 1)
    again = core(OWN_ID, 9, epoch_start_offset=50)
    reported.end_term(again)
    assert listener.leaders == [(OWN_ID, 8), (None, 9)]
    assert not reported.is_this_node(again)

"""A partition's follower: where it fetches next, and how much of its log it keeps when the leader's differs."""

import pytest

from quire.replication.follower_role import FollowerRole
from quire.replication.leader_role import LeaderRole
from quire.replication.members import Members
from quire.storage import LogConfig
from tests.replication.leader import Leader


def follower_with(*epochs: tuple[int, int]) -> FollowerRole:
    """A replica that led the partition in these epochs, each with this many records, and now follows another node."""
    leader = Leader()
    for epoch, count in epochs:
        leader.partition.become_leader(epoch, Members((1,), (1,)))
        for _ in range(count):
            leader.append(b"x")
    leader.partition.become_follower(2, 100)
    follower = leader.partition.follower
    assert follower is not None
    return follower


def test_a_follower_fetches_from_the_end_of_its_log_with_its_last_epoch() -> None:
    assert follower_with((1, 3), (4, 2)).fetch_position == (5, 4)


@pytest.mark.parametrize(
    ("epoch", "end_offset", "kept"),
    [
        (4, 10, 5),  # The leader has more of this epoch.
        (4, 4, 4),  # The leader has less of it.
        (3, 4, 3),  # An epoch that this log does not have: truncate to the end of the one before.
        (3, 2, 3),  # The same; the leader's end of that epoch says nothing about the epoch before.
        (1, 2, 2),  # This leader's predecessor lost a part of epoch 1.
    ],
)
def test_a_follower_keeps_what_both_logs_agree_on(epoch: int, end_offset: int, kept: int) -> None:
    assert follower_with((1, 3), (4, 2)).truncation_offset(epoch, end_offset) == kept


@pytest.mark.parametrize(
    ("epoch", "end_offset", "kept"),
    [
        (4, 5, 5),  # In epoch 4 they agree up to here, which is before the start of this log.
        (3, 5, 5),  # An epoch that is older than all that is left of this log.
        (4, 8, 7),  # This log has no more of it.
    ],
)
def test_a_follower_that_agrees_with_the_leader_only_before_its_own_start_keeps_nothing(
    epoch: int, end_offset: int, kept: int
) -> None:
    follower = follower_with((1, 3), (4, 4))
    follower.log.delete_records_before(6)
    assert follower.truncation_offset(epoch, end_offset) == kept


def test_a_follower_knows_whom_it_follows_and_ignores_what_is_older() -> None:
    follower = follower_with((1, 1))
    partition = follower.partition
    assert (follower.leader_id, follower.leader_epoch) == (2, 100)
    partition.become_follower(3, 99)
    assert partition.follower is follower
    partition.become_follower(3, 101)
    assert partition.follower is not None and partition.follower.leader_id == 3
    assert partition.leader_epoch == 101


class Follower(Leader):
    """Follows another node; flushes fail, because the disk is full."""

    def __init__(self) -> None:
        super().__init__(log_config=LogConfig(flush_messages=1))
        self.may_fetch: list[FollowerRole] = []

    def flush_wanted(self, role: LeaderRole | FollowerRole) -> None:
        role.flush_failed()

    def follower_flushed(self, follower: FollowerRole) -> None:
        self.may_fetch.append(follower)


def test_a_follower_fetches_again_when_its_topic_no_longer_asks_for_a_flush_that_fails() -> None:
    node = Follower()
    node.append(b"x")
    node.partition.become_follower(2, 1)
    follower = node.partition.follower
    assert follower is not None and not follower.may_fetch
    node.partition.settings_changed()
    assert node.may_fetch == []
    node.log.config = LogConfig()
    node.partition.settings_changed()
    assert node.may_fetch == [follower]

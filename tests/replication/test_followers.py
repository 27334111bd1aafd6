"""What the fetches of followers commit, and what they say about deleted records."""

from quire.protocol.errors import ErrorCode
from quire.replication.members import Members
from tests.replication.followed_leader import EPOCH, fetched, followers_of, leader_of

# --- The high watermark


def test_the_slowest_in_sync_follower_holds_the_high_watermark() -> None:
    leader = leader_of((1, 2, 3), (1, 2, 3), written=5)
    fetched(leader, 2, 5)
    assert leader.partition.high_watermark == 0, "nothing is known of node 3"
    fetched(leader, 3, 3)
    assert leader.partition.high_watermark == 3
    fetched(leader, 3, 5)
    assert leader.partition.high_watermark == 5


def test_consumers_are_sent_to_members_of_the_isr_alone() -> None:
    leader = leader_of((1, 2, 3), (1, 2), written=5)
    fetched(leader, 2, 4)
    fetched(leader, 3, 4)
    assert [replica_id for replica_id, _ in followers_of(leader).holding(4)] == [2]


def test_a_follower_outside_the_isr_does_not_hold_it() -> None:
    leader = leader_of((1, 2, 3), (1, 2), written=5)
    fetched(leader, 2, 4)
    fetched(leader, 3, 1)
    assert leader.partition.high_watermark == 4


def test_it_does_not_go_back_when_a_follower_does() -> None:
    leader = leader_of((1, 2), (1, 2), written=5)
    fetched(leader, 2, 4)
    fetched(leader, 2, 1)
    assert leader.partition.high_watermark == 4


def test_a_write_is_acknowledged_when_every_in_sync_replica_has_it() -> None:
    leader = leader_of((1, 2, 3), (1, 2, 3))
    leader.append(b"x")
    told = leader.wait_for(1)
    fetched(leader, 2, 1)
    assert told == []
    fetched(leader, 3, 1)
    assert told == [{}]


def test_nothing_is_committed_below_the_minimum_of_in_sync_replicas() -> None:
    leader = leader_of((1, 2, 3), (1, 2), min_isr=2, written=1)
    fetched(leader, 2, 1)
    followers_of(leader).change_members(Members((1, 2, 3), (1,), 1))
    leader.append(b"only here", acks_all=False)
    assert leader.partition.high_watermark == 1
    followers_of(leader).change_members(Members((1, 2, 3), (1, 2), 2))
    fetched(leader, 2, 2)
    assert leader.partition.high_watermark == 2


def test_a_write_that_is_committed_by_too_few_by_now_fails() -> None:
    leader = leader_of((1, 2), (1, 2), min_isr=2)
    leader.role.flush_waits.clear()
    leader.append(b"x")
    fetched(leader, 2, 1)
    followers_of(leader).change_members(Members((1, 2), (1,), 1))
    told = leader.wait_for(1)
    leader.role.advance_high_watermark()
    assert told == [{leader.role: ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND}]


# --- Deletions


def test_the_low_watermark_is_the_smallest_start_of_a_log() -> None:
    leader = leader_of((1, 2, 3), (1, 2), written=5)
    fetched(leader, 2, 5)
    leader.log.delete_records_before(4)
    assert followers_of(leader).low_watermark() == -1, "nothing is known of node 3"
    fetched(leader, 3, 5)
    assert followers_of(leader).low_watermark() == 0
    followers_of(leader).fetched(2, EPOCH, 5, 3)
    followers_of(leader).fetched(3, EPOCH, 5, 4)
    assert followers_of(leader).low_watermark() == 3


def test_a_deletion_is_done_when_no_broker_that_is_up_has_the_records() -> None:
    leader = leader_of((1, 2, 3), (1, 2, 3), written=5)
    followers = followers_of(leader)
    followers.fetched(2, EPOCH, 5, 0)
    followers.fetched(3, EPOCH, 5, 0)
    leader.log.delete_records_before(4)
    done: list[int] = []
    followers.when_deleted(4).when_done(done.append)
    followers.fetched(2, EPOCH, 5, 4)
    assert done == []
    followers.fetched(3, EPOCH, 5, 4)
    assert done == [4]


def test_a_deletion_does_not_wait_for_brokers_that_are_down() -> None:
    leader = leader_of((1, 2), (1, 2), written=5)
    followers = followers_of(leader)
    followers.fetched(2, EPOCH, 5, 0)
    leader.log.delete_records_before(4)
    done: list[int] = []
    followers.when_deleted(4).when_done(done.append)
    followers.change_members(Members((1, 2), (1,), 1))
    assert done == []
    leader.eligible = False
    followers.consider_joining()
    assert done == [4]

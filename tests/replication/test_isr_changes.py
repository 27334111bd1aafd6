"""How followers join and leave the ISR: what the leader proposes, and what the controller's decision changes."""

from quire.replication.in_sync_replicas import IsrChange
from quire.replication.members import Members
from tests.replication.followed_leader import EPOCH, LAG_MS, agree, change_of, fetched, followers_of, leader_of
from tests.replication.leader import Leader

# --- Joining the ISR


def test_a_follower_joins_when_it_has_everything_that_is_committed() -> None:
    leader = leader_of((1, 2, 3), (1, 2), written=4)
    fetched(leader, 2, 4)
    fetched(leader, 3, 3)
    assert leader.isr_changes == []
    fetched(leader, 3, 4)
    assert leader.isr_changes == [leader.role]
    assert change_of(leader) == IsrChange((1, 2, 3), (-1, EPOCH, EPOCH), 0, 0)


def test_a_follower_that_asks_to_join_holds_the_high_watermark_at_once() -> None:
    leader = leader_of((1, 2), (1,), written=2)
    fetched(leader, 2, 2)
    leader.append(b"x", acks_all=False)
    assert leader.partition.high_watermark == 2, "another leader may have been elected from the larger set"
    agree(leader, 1)
    assert leader.partition.high_watermark == 2
    fetched(leader, 2, 3)
    assert leader.partition.high_watermark == 3


def test_a_follower_needs_what_earlier_leaders_wrote_even_if_it_is_not_committed() -> None:
    leader = leader_of((1, 2, 3), (1, 2), written=4)
    leader.partition.become_leader(1, Members((1, 2, 3), (1, 2), 1))
    fetched(leader, 3, 2)
    assert leader.isr_changes == []
    fetched(leader, 3, 4)
    assert leader.isr_changes == [leader.role]


def test_a_follower_does_not_join_with_records_from_before_the_start_of_the_leaders_log() -> None:
    """They may be of an earlier leader, and not what was committed there."""
    leader = leader_of((1, 2, 3), (1,), written=4)
    leader.role.log.delete_records_before(3)
    fetched(leader, 2, 4, 1)
    fetched(leader, 3, 4, 3)
    assert change_of(leader).isr == (1, 3)
    agree(leader, 1)
    leader.role.log.delete_records_before(4)
    fetched(leader, 2, 4, 3)
    assert change_of(leader).isr == (1, 3, 2), "it has compared the rest"


def test_a_broker_that_is_not_up_does_not_join_until_it_is() -> None:
    leader = leader_of((1, 2), (1,), written=1)
    leader.eligible = False
    fetched(leader, 2, 1)
    assert leader.isr_changes == []
    leader.eligible = True
    followers_of(leader).consider_joining()
    assert leader.isr_changes == [leader.role]


def test_a_follower_that_keeps_up_can_join_although_records_are_appended_all_the_time() -> None:
    leader = leader_of((1, 2), (1,), written=3)
    fetched(leader, 2, 2)
    leader.append(b"x", acks_all=False)
    assert leader.partition.high_watermark == 4
    fetched(leader, 2, 3)
    leader.append(b"x", acks_all=False)
    assert leader.partition.high_watermark == 4, "it has all of the last fetch: the high watermark waits for it"
    fetched(leader, 2, 4)
    assert leader.isr_changes == [leader.role]


def test_the_high_watermark_does_not_wait_for_a_joining_follower_that_has_ended() -> None:
    leader = leader_of((1, 2), (1,), written=3)
    fetched(leader, 2, 2)
    leader.append(b"x", acks_all=False)
    fetched(leader, 2, 3)
    leader.append(b"x", acks_all=False)
    leader.eligible = False
    followers_of(leader).consider_joining()
    assert leader.partition.high_watermark == 5


# --- Leaving the ISR


def test_a_follower_that_lags_leaves_and_counts_until_the_controller_agrees() -> None:
    leader = leader_of((1, 2), (1, 2), written=1)
    fetched(leader, 2, 1)
    followers_of(leader).check_lag(0, LAG_MS)
    leader.append(b"x", acks_all=False)
    followers_of(leader).check_lag(LAG_MS, LAG_MS)
    assert leader.isr_changes == []
    followers_of(leader).check_lag(2 * LAG_MS, LAG_MS)
    assert change_of(leader) == IsrChange((1,), (-1,), 0, 0)
    assert leader.partition.high_watermark == 1
    agree(leader, 1)
    assert leader.partition.high_watermark == 2


def test_a_follower_of_an_idle_partition_does_not_lag() -> None:
    leader = leader_of((1, 2), (1, 2), written=1)
    fetched(leader, 2, 1)
    for at in range(10):
        followers_of(leader).check_lag(at * LAG_MS / 2, LAG_MS)
    leader.append(b"x", acks_all=False)
    followers_of(leader).check_lag(5 * LAG_MS, LAG_MS)
    assert leader.isr_changes == []


def test_a_leader_that_was_paused_reads_what_came_meanwhile_before_it_judges() -> None:
    leader = leader_of((1, 2), (1, 2), written=1)
    fetched(leader, 2, 1)
    followers_of(leader).check_lag(0, LAG_MS)
    leader.append(b"x", acks_all=False)
    followers_of(leader).check_lag(20 * LAG_MS, LAG_MS)
    assert leader.isr_changes == []


def test_a_follower_that_stays_one_fetch_behind_does_not_lag() -> None:
    leader = leader_of((1, 2), (1, 2))
    for at in range(20):
        leader.append(b"x", acks_all=False)
        fetched(leader, 2, at)
        followers_of(leader).check_lag(at * LAG_MS / 2, LAG_MS)
    assert leader.isr_changes == []


def test_a_member_that_has_never_fetched_gets_the_same_time() -> None:
    leader = leader_of((1, 2), (1, 2), written=1)
    followers_of(leader).check_lag(0, LAG_MS)
    followers_of(leader).check_lag(LAG_MS, LAG_MS)
    assert leader.isr_changes == []
    followers_of(leader).check_lag(2 * LAG_MS, LAG_MS)
    assert change_of(leader).isr == (1,)


def test_a_new_member_gets_that_time_again() -> None:
    leader = leader_of((1, 2), (1,), written=1)
    followers_of(leader).check_lag(0, LAG_MS)
    followers_of(leader).change_members(Members((1, 2), (1, 2), 1))
    followers_of(leader).check_lag(LAG_MS, LAG_MS)
    assert leader.isr_changes == []


# --- Decisions of the controller


def cut_off(leader: Leader) -> None:
    """Node 2 keeps up, node 3 has fetched up to 8 and no more, and the leader proposes that it leaves the ISR."""
    followers = followers_of(leader)
    for replica_id in (2, 3, 2, 3):
        fetched(leader, replica_id, 8)
    followers.check_lag(0, LAG_MS)
    for number in range(1, 4):
        leader.append(b"x", acks_all=False)
        fetched(leader, 2, leader.log.end_offset)
        followers.check_lag(number * 0.75 * LAG_MS, LAG_MS)
    assert leader.partition.high_watermark == 8


def keep_writing(leader: Leader, times: int, from_ms: float = 3 * LAG_MS) -> None:
    """Node 2 copies each record, and lag is checked after each."""
    for number in range(times):
        leader.append(b"x", acks_all=False)
        fetched(leader, 2, leader.log.end_offset)
        followers_of(leader).check_lag(from_ms + number * LAG_MS / 2, LAG_MS)


def test_a_follower_that_has_left_and_fetches_no_more_does_not_hold_the_high_watermark() -> None:
    leader = leader_of((1, 2, 3), (1, 2, 3), min_isr=2, written=8)
    cut_off(leader)
    assert change_of(leader).isr == (1, 2)
    agree(leader, 1)
    assert leader.partition.high_watermark == leader.log.end_offset
    keep_writing(leader, 6)
    assert leader.partition.high_watermark == leader.log.end_offset
    assert len(leader.isr_changes) == 1


def test_a_follower_that_fetches_no_more_does_not_join_again_while_nothing_is_committed() -> None:
    leader = leader_of((1, 2, 3), (1, 2, 3), min_isr=3, written=8)
    cut_off(leader)
    agree(leader, 1)
    assert leader.role.followers.is_under_min_isr
    keep_writing(leader, 6)
    assert len(leader.isr_changes) == 1, "the ISR must not change to and fro"


def test_a_follower_that_has_left_is_considered_when_it_fetches_again() -> None:
    leader = leader_of((1, 2, 3), (1, 2, 3), min_isr=2, written=8)
    cut_off(leader)
    agree(leader, 1)
    fetched(leader, 3, leader.log.end_offset)
    assert change_of(leader).isr == (1, 2, 3)


def test_a_follower_that_fetches_before_the_controller_agrees_joins_again_at_once() -> None:
    """In an idle partition it does not fetch again."""
    leader = leader_of((1, 2, 3), (1, 2, 3), min_isr=2, written=8)
    cut_off(leader)
    fetched(leader, 3, leader.log.end_offset)
    agree(leader, 1)
    assert change_of(leader).isr == (1, 2, 3)


def test_the_high_watermark_stops_waiting_for_a_joining_follower_that_fetches_no_more() -> None:
    leader = leader_of((1, 2, 3), (1, 2), written=3)
    fetched(leader, 2, 3)
    fetched(leader, 3, 2)
    followers_of(leader).check_lag(0, LAG_MS)
    leader.append(b"x", acks_all=False)
    fetched(leader, 2, 4)
    fetched(leader, 3, 3)
    keep_writing(leader, 1, from_ms=LAG_MS / 2)
    assert leader.partition.high_watermark == 4
    keep_writing(leader, 5, from_ms=LAG_MS)
    assert leader.partition.high_watermark == leader.log.end_offset


def test_one_change_at_a_time() -> None:
    leader = leader_of((1, 2, 3), (1,), written=1)
    fetched(leader, 2, 1)
    fetched(leader, 3, 1)
    assert leader.isr_changes == [leader.role]
    assert change_of(leader).isr == (1, 2)
    agree(leader, 1)
    assert change_of(leader).isr == (1, 2, 3)


def test_a_refused_change_is_as_if_it_had_never_been_proposed() -> None:
    leader = leader_of((1, 2), (1,), written=1)
    fetched(leader, 2, 1)
    followers_of(leader).refused(change_of(leader))
    assert followers_of(leader).change is None
    leader.append(b"x", acks_all=False)
    assert leader.partition.high_watermark == 2


def test_a_refusal_that_comes_late_does_not_concern_the_next_change() -> None:
    leader = leader_of((1, 2, 3), (1,), written=1)
    fetched(leader, 2, 1)
    late = change_of(leader)
    followers_of(leader).change_members(Members((1, 2, 3), (1, 2), 1))
    fetched(leader, 3, 1)
    followers_of(leader).refused(late)
    assert change_of(leader).isr == (1, 2, 3)


def test_older_metadata_changes_nothing() -> None:
    leader = leader_of((1, 2), (1,), written=1)
    followers_of(leader).change_members(Members((1, 2), (1, 2), 5))
    followers_of(leader).change_members(Members((1, 2), (1,), 4))
    assert followers_of(leader).in_sync.committed == (1, 2)


def test_metadata_without_news_leaves_a_proposed_change_as_it_is() -> None:
    leader = leader_of((1, 2), (1,), written=1)
    fetched(leader, 2, 1)
    followers_of(leader).change_members(Members((1, 2), (1,), 0))
    assert change_of(leader).isr == (1, 2)


def test_a_leadership_that_has_ended_proposes_nothing() -> None:
    leader = leader_of((1, 2), (1,), written=1)
    role = leader.role
    fetched(leader, 2, 1)
    leader.partition.become_follower(2, 1)
    assert role.followers.change is None


def test_a_removed_replica_no_longer_counts() -> None:
    leader = leader_of((1, 2, 3), (1, 2, 3), written=2)
    fetched(leader, 2, 2)
    followers_of(leader).change_members(Members((1, 2), (1, 2), 1))
    assert leader.partition.high_watermark == 2
    fetched(leader, 3, 1)
    assert leader.partition.high_watermark == 2


def test_another_follower_is_considered_after_a_change_was_refused() -> None:
    leader = leader_of((1, 2, 3), (1,), written=1)
    fetched(leader, 2, 1)
    fetched(leader, 3, 1)
    followers_of(leader).refused(change_of(leader))
    followers_of(leader).check_lag(0, LAG_MS)
    assert change_of(leader).isr == (1, 2)
    leader.eligible = False
    followers_of(leader).refused(change_of(leader))
    leader.eligible = True
    followers_of(leader).change_members(Members((1, 3), (1,), 1))
    assert change_of(leader).isr == (1, 3)

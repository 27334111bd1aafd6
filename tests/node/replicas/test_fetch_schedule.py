"""Which partitions a follower's next fetch names."""

from quire.node.replicas.fetch_schedule import CopiedPartition, FetchSchedule
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchRequest, FetchResponse
from quire.replication.members import Members
from tests.replication.leader import Leader

SESSION = 7


def copied(index: int, *, records: int = 0) -> CopiedPartition:
    leader = Leader()
    for _ in range(records):
        leader.append(b"x")
    leader.partition.index = index
    leader.partition.become_leader(1, Members((1,), (1,)))
    leader.partition.become_follower(2, 5)
    assert leader.partition.follower is not None
    return CopiedPartition(leader.partition.follower)


def fetch(schedule: FetchSchedule, session_id: int = SESSION, error: ErrorCode = ErrorCode.NONE) -> FetchRequest:
    """A fetch that the leader has answered."""
    request = FetchRequest()
    schedule.fill(request, 1000)
    schedule.answered(FetchResponse(session_id=session_id, error_code=error))
    return request


def named(request: FetchRequest) -> list[int]:
    return [wanted.partition for topic in request.topics for wanted in topic.partitions]


def forgotten(request: FetchRequest) -> list[int]:
    return [index for topic in request.forgotten_topics_data for index in topic.partitions]


def schedule_of(*partitions: CopiedPartition) -> FetchSchedule:
    schedule = FetchSchedule()
    for each in partitions:
        schedule.add(each)
    return schedule


def test_the_first_fetch_names_every_partition_and_later_ones_what_has_changed() -> None:
    first, second = copied(0), copied(1)
    schedule = schedule_of(first, second)
    request = fetch(schedule)
    assert (request.session_id, request.session_epoch, named(request)) == (0, 0, [0, 1])
    schedule.changed(second)
    request = fetch(schedule)
    assert (request.session_id, request.session_epoch, named(request)) == (SESSION, 1, [1])
    request = fetch(schedule)
    assert (request.session_epoch, named(request), forgotten(request)) == (2, [], [])


def test_a_fetch_says_where_the_log_ends_and_in_which_epoch_it_is_copied() -> None:
    partition = copied(0, records=3)
    request = FetchRequest()
    schedule_of(partition).fill(request, 1000)
    (wanted,) = request.topics[0].partitions
    assert (wanted.fetch_offset, wanted.last_fetched_epoch, wanted.current_leader_epoch) == (3, 1, 5)
    assert (wanted.partition_max_bytes, wanted.log_start_offset) == (1000, 0)
    assert partition.requested_offset == 3


def test_the_leader_is_told_where_the_log_starts_when_retention_has_deleted_its_beginning() -> None:
    """Otherwise it would wait for this follower to delete it, before a deletion is done or the follower may join."""
    partition = copied(0, records=3)
    schedule = schedule_of(partition)
    fetch(schedule)
    assert not partition.has_news
    partition.follower.log.delete_records_before(2)
    assert partition.has_news
    schedule.changed(partition)
    (wanted,) = fetch(schedule).topics[0].partitions
    assert (wanted.fetch_offset, wanted.log_start_offset) == (3, 2)
    assert not partition.has_news


def test_a_paused_partition_is_forgotten_and_named_again_when_its_time_has_come() -> None:
    first, second = copied(0), copied(1)
    schedule = schedule_of(first, second)
    fetch(schedule)
    schedule.pause(first, 100.0)
    assert forgotten(fetch(schedule)) == [0]
    schedule.resume_due(99.0)
    assert named(fetch(schedule)) == []
    assert schedule.next_resume_ms == 100.0
    schedule.resume_due(100.0)
    assert named(fetch(schedule)) == [0]
    assert schedule.next_resume_ms is None


def test_a_partition_that_is_paused_and_resumed_between_two_fetches_is_only_named() -> None:
    first = copied(0)
    schedule = schedule_of(first)
    fetch(schedule)
    schedule.pause(first, 100.0)
    schedule.resume(first.key)
    request = fetch(schedule)
    assert (named(request), forgotten(request)) == ([0], [])


def test_a_paused_partition_that_changes_is_not_named_before_its_time_has_come() -> None:
    """Its log may be waiting for the disk, and a fetch would tell the leader that everything in it is on disk."""
    first, second = copied(0), copied(1)
    schedule = schedule_of(first, second)
    fetch(schedule)
    schedule.pause(first, 100.0)
    schedule.changed(first)
    assert named(fetch(schedule)) == []
    schedule.resume(first.key)
    assert named(fetch(schedule)) == [0]


def test_a_removed_partition_is_forgotten_once() -> None:
    first, second = copied(0), copied(1)
    schedule = schedule_of(first, second)
    fetch(schedule)
    schedule.remove(first.key)
    schedule.remove(first.key)
    assert forgotten(fetch(schedule)) == [0]
    assert forgotten(fetch(schedule)) == []
    schedule.changed(first)
    assert named(fetch(schedule)) == [], "it is no longer copied from here"


def test_a_lost_session_begins_again_with_every_partition_that_is_not_paused() -> None:
    first, second, third = copied(0), copied(1), copied(2)
    schedule = schedule_of(first, second, third)
    fetch(schedule)
    schedule.pause(second, 100.0)
    schedule.remove(third.key)
    schedule.lost()
    request = fetch(schedule)
    assert (request.session_id, request.session_epoch) == (SESSION, 0), "the leader closes the session that it knows"
    assert (named(request), forgotten(request)) == ([0], [])


def test_a_leader_that_does_not_know_the_session_gets_a_new_one() -> None:
    schedule = schedule_of(copied(0))
    fetch(schedule)
    schedule.fill(FetchRequest(), 1000)
    assert not schedule.answered(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    request = fetch(schedule)
    assert (request.session_id, request.session_epoch, named(request)) == (0, 0, [0])


def test_a_leader_without_sessions_gets_every_partition_each_time() -> None:
    schedule = schedule_of(copied(0), copied(1))
    assert named(fetch(schedule, session_id=0)) == [0, 1]
    assert named(fetch(schedule, session_id=0)) == [0, 1]


def test_a_schedule_is_empty_when_all_of_it_is_paused() -> None:
    partition = copied(0)
    schedule = schedule_of(partition)
    assert not schedule.is_empty
    schedule.pause(partition, 10.0)
    assert schedule.is_empty
    schedule.resume(partition.key)
    assert not schedule.is_empty
    fetch(schedule)
    assert not schedule.is_empty, "the leader may have news of it"


def test_a_session_ends_when_there_is_nothing_to_fetch_any_more() -> None:
    first, second = copied(0), copied(1)
    schedule = schedule_of(first, second)
    fetch(schedule)
    schedule.remove(first.key)
    schedule.pause(second, 10.0)
    assert schedule.is_empty and schedule.has_session
    request = fetch(schedule, session_id=0)
    assert (request.session_id, request.session_epoch, request.max_wait_ms) == (SESSION, -1, 0)
    assert not schedule.has_session
    schedule.resume(second.key)
    request = fetch(schedule)
    assert (request.session_epoch, named(request)) == (0, [1])

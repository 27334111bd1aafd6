"""A member of a group against a coordinator that the test controls."""

import pytest

from quire.client.consumer import BEGINNING, END, ConsumerConfig, Start
from quire.client.group_consumer import COMMIT_INTERVAL_MS, GroupConsumer
from quire.client.offsets import TopicPartition
from quire.client.producer import Producer
from quire.protocol.errors import ApiError, ErrorCode
from tests.client.model_coordinators import CoordinatedCluster, ModelGroup

FIRST, SECOND, THIRD = (TopicPartition("t", index) for index in range(3))


class World:
    """Three partitions of a hundred records each on three nodes, and a group that one member reads in."""

    def __init__(self, *target: TopicPartition, otherwise: Start = BEGINNING) -> None:
        self.model = CoordinatedCluster(nodes=3)
        self.model.create("t", partitions=3)
        producer = Producer(self.model.client())
        self.model.run(producer.prepare("t"))
        for number in range(300):
            producer.send("t", b"%d" % number, partition=number % 3)
        self.model.wait(producer.flush())
        self.group: ModelGroup = self.model.group("g", 2, protocol="consumer", target=list(target))
        self.member = GroupConsumer(self.model.client(), "g", ["t"], ConsumerConfig(), otherwise)
        self.seen: dict[TopicPartition, list[int]] = {}

    def read(self, count: int, *, done: bool = True) -> None:
        """Reads until this many records have been read in total."""
        while sum(map(len, self.seen.values())) < count:
            self.model.wait(self.member.arrival())
            for fetched in self.member.poll():
                self.seen.setdefault(fetched.topic_partition, []).extend(record.offset for record in fetched.records())
                if done:
                    self.member.done_with(fetched.topic_partition, fetched.next_offset)

    def wait_until_it_reads(self, *topic_partitions: TopicPartition) -> None:
        self.model.clock.run_until(lambda: list(self.group.owned.values()) == [list(topic_partitions)])


def test_it_reads_what_it_is_given_and_nothing_else() -> None:
    world = World(FIRST, THIRD)
    world.member.start()
    world.read(200)
    assert world.seen == {FIRST: list(range(100)), THIRD: list(range(100))}
    assert list(world.group.owned.values()) == [[FIRST, THIRD]]


@pytest.mark.parametrize(("otherwise", "start"), [(BEGINNING, 0), (END, 100), (Start(offset=42), 42)])
def test_it_begins_at_the_groups_committed_offset_or_as_configured(otherwise: Start, start: int) -> None:
    world = World(FIRST, SECOND, otherwise=otherwise)
    world.group.offsets[FIRST] = 90
    world.member.start()
    world.wait_until_it_reads(FIRST, SECOND)
    assert world.member.positions == {FIRST: 90, SECOND: start}


def test_only_what_is_done_with_is_committed_now_and_then() -> None:
    world = World(FIRST)
    world.member.start()
    world.read(100, done=False)
    world.member.done_with(FIRST, 7)
    world.model.clock.run_for(COMMIT_INTERVAL_MS + 1000)
    assert world.group.offsets == {FIRST: 7}
    world.member.done_with(FIRST, 60)
    world.model.clock.run_for(COMMIT_INTERVAL_MS)
    assert world.group.offsets == {FIRST: 60}


def test_the_first_position_is_committed_so_that_the_next_member_misses_nothing() -> None:
    world = World(FIRST, otherwise=END)
    world.member.start()
    world.wait_until_it_reads(FIRST)
    world.model.run(world.member.close())
    assert world.group.offsets == {FIRST: 100}


def test_a_partition_that_goes_to_another_is_committed_before_it_is_given_up() -> None:
    world = World(FIRST, SECOND)
    world.member.start()
    world.read(200)
    world.group.target = [SECOND]
    world.wait_until_it_reads(SECOND)
    assert world.group.offsets[FIRST] == 100
    assert list(world.member.positions) == [SECOND]
    world.member.done_with(FIRST, 0)  # too late: it no longer owns the partition
    world.model.run(world.member.close())
    assert world.group.offsets == {FIRST: 100, SECOND: 100}


def test_new_partitions_come_beside_the_old_and_no_record_is_seen_twice() -> None:
    world = World(FIRST)
    world.member.start()
    world.read(100)
    world.group.target = [FIRST, SECOND, THIRD]
    world.group.offsets[THIRD] = 95
    world.read(205)
    assert world.seen == {FIRST: list(range(100)), SECOND: list(range(100)), THIRD: list(range(95, 100))}


@pytest.mark.parametrize(("otherwise", "start"), [(BEGINNING, 0), (END, 100)])
def test_a_deleted_offset_is_replaced_and_committed(otherwise: Start, start: int) -> None:
    world = World(FIRST, otherwise=otherwise)
    world.group.offsets[FIRST] = 5000
    world.member.start()
    world.model.wait(world.member.arrival())
    world.model.clock.run_for(2000)
    world.model.run(world.member.close())
    assert world.group.offsets == {FIRST: start}


def test_a_fenced_member_gives_up_everything_without_a_commit_and_joins_again() -> None:
    world = World(FIRST)
    world.member.start()
    world.read(100)
    world.group.epochs.clear()
    world.group.offsets = {FIRST: 50}  # another member has committed it meanwhile
    world.model.clock.run_until(lambda: bool(world.group.epochs))
    world.wait_until_it_reads(FIRST)
    assert world.group.offsets == {FIRST: 50}
    assert world.member.positions == {FIRST: 50}


def test_a_coordinator_that_moves_or_loads_is_followed() -> None:
    world = World(FIRST)
    world.model.loading(2, times=3)
    world.member.start()
    world.read(100)
    world.group.coordinator = 3
    world.model.loading(3, times=3)
    world.model.clock.run_for(2 * COMMIT_INTERVAL_MS)
    assert world.group.offsets == {FIRST: 100}


def test_it_waits_while_a_transaction_may_still_change_where_to_begin() -> None:
    world = World(FIRST)
    world.model.unstable("g", times=3)
    world.member.start()
    world.read(100)
    assert world.seen == {FIRST: list(range(100))}


def test_a_group_that_cannot_be_joined_raises_an_error_for_the_reader() -> None:
    world = World(FIRST)
    world.model.refuse("ConsumerGroupHeartbeat", ErrorCode.GROUP_AUTHORIZATION_FAILED)
    world.member.start()
    world.model.wait(world.member.arrival())
    with pytest.raises(ApiError) as caught:
        world.member.poll()
    assert caught.value.code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_closing_commits_and_leaves() -> None:
    world = World(FIRST)
    world.member.start()
    world.read(100)
    world.model.run(world.member.close())
    assert world.group.offsets == {FIRST: 100}
    assert world.group.epochs == {}
    world.model.clock.run_for(60_000)
    assert world.group.epochs == {}, "a member sends nothing after it has left"


def test_closing_before_it_has_joined_is_quiet() -> None:
    world = World(FIRST)
    world.member.start()
    world.model.run(world.member.close())
    assert world.group.offsets == {}


def test_a_final_commit_that_fails_is_raised_and_the_member_still_leaves() -> None:
    world = World(FIRST)
    world.member.start()
    world.read(100)
    world.model.refuse("OffsetCommit", ErrorCode.GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(ApiError) as caught:
        world.model.run(world.member.close())
    assert caught.value.code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert world.group.epochs == {}

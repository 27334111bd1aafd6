"""Which throttled partitions a follower's fetch names while its quota is used up, and afterwards."""

from quire.node.replicas.fetch_schedule import UNLIMITED_BYTES, CopiedPartition, FetchSchedule
from quire.node.replicas.rate_window import RateWindow
from quire.node.replicas.replication_quota import UNLIMITED, ReplicationQuota
from quire.node.replicas.throttled_copies import AT_ONCE_MAX as AT_ONCE
from quire.node.replicas.throttled_copies import AT_ONCE_MIN, SHARE_BYTES, ThrottledCopies, at_once_of
from quire.protocol.messages.fetch import FetchRequest, FetchResponse
from simulator.clock import HostClock, SimClock
from tests.node.replicas.test_fetch_schedule import copied, forgotten, named

RATE = AT_ONCE * SHARE_BYTES


class Fetcher:
    """Partitions 0 to `partitions`-1 of a topic that is throttled as a whole."""

    def __init__(self, partitions: int = 3, rate: int = RATE) -> None:
        self.clock = SimClock()
        self.quota = ReplicationQuota(HostClock(self.clock), RateWindow(11, 1000), rate)
        self.schedule = FetchSchedule()
        self.copies = ThrottledCopies(self.quota, self.schedule, self)
        self.partitions = [copied(index) for index in range(partitions)]
        self.topic = self.partitions[0].follower.partition.topic
        self.quota.throttled[self.topic] = None
        self.woken = 0
        for each in self.partitions:
            self.schedule.add(each)

    def has_quota(self) -> None:
        self.woken += 1

    def fetch(self) -> FetchRequest:
        self.copies.before_fetch()
        request = FetchRequest()
        self.schedule.fill(request, 1_000_000)
        self.schedule.answered(FetchResponse(session_id=7))
        return request

    def got(self, partition: CopiedPartition, size_bytes: int) -> None:
        self.copies.answered(partition, size_bytes)

    def is_open(self) -> None:
        self.clock.run_for(self.quota.left_ms)


def test_partitions_that_are_not_in_sync_are_left_out_while_the_quota_is_used_up() -> None:
    fetcher = Fetcher()
    fetcher.partitions[1].is_in_sync = True
    assert sorted(named(fetcher.fetch())) == [0, 1, 2]
    fetcher.got(fetcher.partitions[0], 2 * RATE)
    request = fetcher.fetch()
    assert named(request) == [] and sorted(forgotten(request)) == [0, 2]
    assert fetcher.woken == 0 and 1000 < fetcher.copies.wait_max_ms(60_000) < 2200
    fetcher.is_open()
    assert fetcher.woken == 1
    assert sorted(named(fetcher.fetch())) == [0, 2]


def test_those_of_which_nothing_has_come_are_the_next_ones() -> None:
    fetcher, served = Fetcher(partitions=2 * AT_ONCE + 1), set()
    for _ in fetcher.partitions:
        (first, *_) = named(fetcher.fetch())
        served.add(first)
        fetcher.got(fetcher.partitions[first], 10 * RATE)
        fetcher.fetch()
        fetcher.is_open()
    assert served == set(range(2 * AT_ONCE + 1))


def test_a_fetch_names_few_of_many_throttled_partitions_with_a_share_of_the_rate_each() -> None:
    fetcher = Fetcher(partitions=100)
    request = fetcher.fetch()
    assert named(request) == list(range(AT_ONCE))
    assert {each.partition_max_bytes for each in request.topics[0].partitions} == {SHARE_BYTES}
    fetcher.partitions[0].is_in_sync = True
    fetcher.got(fetcher.partitions[0], 10)
    assert named(fetcher.fetch()) == [AT_ONCE]
    assert fetcher.partitions[0].max_bytes == UNLIMITED_BYTES


def test_a_partition_that_pauses_or_goes_makes_room_for_another() -> None:
    fetcher = Fetcher(partitions=AT_ONCE + 2)
    fetcher.fetch()
    fetcher.schedule.pause(fetcher.partitions[0], 1e9)
    fetcher.copies.removed(fetcher.partitions[1].key)
    fetcher.schedule.remove(fetcher.partitions[1].key)
    assert named(fetcher.fetch()) == [AT_ONCE, AT_ONCE + 1]


def test_removing_the_throttle_or_its_rate_releases_all_at_once() -> None:
    for is_rate in (False, True):
        fetcher = Fetcher(partitions=2 * AT_ONCE)
        fetcher.fetch()
        fetcher.got(fetcher.partitions[0], 10 * RATE)
        fetcher.fetch()
        if is_rate:
            fetcher.quota.set_rate(UNLIMITED)
        else:
            fetcher.quota.throttled.clear()
        fetcher.copies.quota_changed()
        assert sorted(named(fetcher.fetch())) == list(range(2 * AT_ONCE))


def test_a_throttle_that_is_set_later_counts_for_partitions_of_which_nothing_comes() -> None:
    fetcher = Fetcher()
    fetcher.quota.throttled.clear()
    fetcher.fetch()
    fetcher.quota.throttled[fetcher.topic] = frozenset((0, 1))
    fetcher.quota.record(10 * RATE)
    fetcher.copies.quota_changed()
    request = fetcher.fetch()
    assert sorted(forgotten(request)) == [0, 1] and 2 not in forgotten(request)


def test_only_throttled_partitions_count() -> None:
    fetcher = Fetcher()
    fetcher.quota.throttled[fetcher.topic] = frozenset((1,))
    fetcher.fetch()
    fetcher.got(fetcher.partitions[0], 10 * RATE)
    assert not fetcher.quota.is_used_up
    fetcher.got(fetcher.partitions[1], 10 * RATE)
    assert fetcher.quota.is_used_up


def test_fewer_are_fetched_at_a_time_with_a_low_rate() -> None:
    assert [at_once_of(rate) for rate in (0, 3 * SHARE_BYTES, RATE, 100 * RATE)] == [AT_ONCE_MIN, 3, AT_ONCE, AT_ONCE]


def test_a_partition_that_falls_behind_is_left_out_although_nothing_came_of_it() -> None:
    fetcher = Fetcher()
    behind = fetcher.partitions[0]
    for each in fetcher.partitions:
        each.is_in_sync = True
    fetcher.fetch()
    fetcher.quota.record(10 * RATE)
    behind.is_in_sync = False
    fetcher.got(behind, 0)
    assert forgotten(fetcher.fetch()) == [0]

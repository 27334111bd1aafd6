from collections import Counter

from quire.client.metadata import NO_LEADER, Partition, Topic
from quire.client.partitioner import StickyPartitioner, partition_for_key
from simulator.random import SimRandom


def topic(leaders: list[int]) -> Topic:
    partitions = {index: Partition(index, leader, 0, [1], [1], []) for index, leader in enumerate(leaders)}
    return Topic("t", bytes(16), False, partitions=partitions)


def test_a_key_goes_where_the_java_client_sends_it() -> None:
    # (murmur2 & 0x7fffffff) % partitions, with murmur2("foobar") = -790332482 and murmur2("abc") = 479470107
    assert partition_for_key(b"foobar", 6) == (-790332482 & 0x7FFFFFFF) % 6 == 0
    assert partition_for_key(b"abc", 6) == 479470107 % 6 == 3
    assert partition_for_key(b"abc", 1) == 0


def test_records_without_a_key_stay_together_until_a_batch_is_full() -> None:
    sticky = StickyPartitioner(SimRandom(1), switch_bytes=100)
    wide = topic([1] * 8)
    chosen = [sticky.choose(wide, 10) for _ in range(20)]
    assert len(set(chosen[:10])) == 1
    assert len(set(chosen[10:])) == 1
    assert chosen[0] != chosen[10]


def test_every_partition_gets_its_share_over_time() -> None:
    sticky = StickyPartitioner(SimRandom(2), switch_bytes=1)
    counts = Counter(sticky.choose(topic([1] * 4), 1) for _ in range(4000))
    assert sorted(counts) == [0, 1, 2, 3]
    assert min(counts.values()) > 800


def test_partitions_without_a_leader_are_left_out_while_others_have_one() -> None:
    sticky = StickyPartitioner(SimRandom(3), switch_bytes=1)
    assert {sticky.choose(topic([NO_LEADER, 1, NO_LEADER]), 1) for _ in range(20)} == {1}


def test_without_any_leader_records_wait_on_some_partition() -> None:
    sticky = StickyPartitioner(SimRandom(4), switch_bytes=1)
    assert sticky.choose(topic([NO_LEADER, NO_LEADER]), 1) in (0, 1)


def test_a_partition_that_disappeared_is_not_chosen_again() -> None:
    sticky = StickyPartitioner(SimRandom(5), switch_bytes=1_000_000)
    sticky.choose(topic([1] * 50), 1)
    assert sticky.choose(topic([1]), 1) == 0

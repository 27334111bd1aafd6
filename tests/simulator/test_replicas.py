"""When a power loss may lose records of a partition: only if no replica with all of them is left."""

from simulator.ledger import Ledger, TopicBook
from simulator.replicas import Replicas


def replicas(*in_sync: str) -> Replicas:
    found = Replicas()
    found.are(in_sync)
    return found


def test_a_replica_loses_records_only_with_its_own_machine() -> None:
    alone = replicas("a")
    assert not alone.power_lost("b")
    assert alone.power_lost("a")


def test_while_the_replicas_of_a_record_are_unknown_any_loss_counts() -> None:
    assert Replicas().power_lost("a")


def test_two_replicas_lose_only_if_both_lose_power_before_one_catches_up() -> None:
    both = replicas("a", "b")
    assert not both.power_lost("a")
    assert both.power_lost("b")


def test_a_replica_that_has_caught_up_again_counts_again() -> None:
    both = replicas("a", "b")
    assert not both.power_lost("a")
    both.are(["b"])
    both.are(["a", "b"])
    assert not both.power_lost("b")


def test_the_records_left_after_a_loss_are_the_truth() -> None:
    both = replicas("a", "b")
    assert not both.power_lost("a")
    both.settled("a")
    assert not both.power_lost("b")


def test_a_loss_elsewhere_leaves_a_partition_alone_and_its_answers_valid() -> None:
    ledger = Ledger()
    topic = ledger.topics[bytes(16)] = TopicBook("t", bytes(16), 2, stays=True)
    here, there = topic.partitions
    here.replicas.are(["a"])
    there.replicas.are(["b"])
    here.flushed = there.flushed = 3
    ledger.power_lost("a")
    ledger.power_lost("a")
    assert (here.era, there.era, ledger.era) == (2, 0, 2)
    assert [here.surely_kept(era) for era in (0, 1, 2)] == [3, 3, 0]


def test_what_the_shortest_of_them_has_on_disk_is_kept() -> None:
    both = replicas("a", "b")
    both.power_lost("a", 7)
    assert not both.are_lost
    both.power_lost("b", 5)
    assert both.are_lost
    assert both.kept == 5


def test_a_second_loss_takes_nothing_that_the_first_one_left_on_disk() -> None:
    both = replicas("a")
    both.power_lost("a", 7)
    both.power_lost("a", 9)
    assert both.kept == 7


def test_a_replica_that_is_not_in_sync_is_remembered_to_have_lost_power() -> None:
    both = replicas("a", "b")
    both.are(["b"])
    assert not both.power_lost("a", 5)
    assert both.hurt == {"a": 5}
    both.are(["a", "b"])
    assert not both.hurt


def test_a_replica_that_has_caught_up_before_it_lost_power_lacks_what_it_lost() -> None:
    both = replicas("a")
    both.power_lost("b", 5)
    both.are(["a", "b"], lambda name: name != "b")
    assert both.power_lost("a", 7)
    assert both.kept == 5

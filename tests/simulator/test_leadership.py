"""The epoch by which an answer is judged: that of the newest metadata, an earlier one, or one before a loss."""

from simulator.hosts import ALONE
from simulator.leadership import Coordinators, Leadership


def test_the_newest_metadata_says_who_leads() -> None:
    leadership = Leadership()
    leadership.believes("a", 3, "a")
    leadership.believes("b", 4, "b")
    leadership.believes("c", 3, "a")
    assert (leadership.newest, leadership.leader) == (4, "b")
    assert [leadership.epoch_of(node) for node in "abcd"] == [3, 4, -1, -1]


def test_a_leader_that_was_deposed_is_not_current() -> None:
    leadership = Leadership()
    leadership.believes("a", 3, "a")
    assert leadership.is_current(leadership.epoch_of("a"))
    leadership.believes("b", 4, "b")
    assert not leadership.is_current(leadership.epoch_of("a"))
    assert leadership.is_current(leadership.epoch_of("b"))


def test_only_a_node_that_believes_to_lead_in_an_earlier_epoch_is_deposed() -> None:
    leadership = Leadership()
    leadership.believes("a", 3, "a")
    assert not leadership.is_deposed(leadership.epoch_of("a"))
    leadership.believes("b", 4, "b")
    assert leadership.is_deposed(leadership.epoch_of("a"))
    assert not leadership.is_deposed(leadership.epoch_of("b"))
    assert not leadership.is_deposed(leadership.epoch_of("c")), "it does not lead"
    assert not leadership.is_deposed(leadership.epoch_of(ALONE))


def test_a_leader_of_the_time_before_a_loss_says_nothing() -> None:
    leadership = Leadership()
    leadership.believes("a", 3, "a")
    leadership.settled = 4
    assert leadership.is_before_loss(3)
    assert leadership.is_before_loss(-1)
    assert not leadership.is_before_loss(4)


def test_a_node_that_has_ended_leads_nothing() -> None:
    leadership = Leadership()
    leadership.believes("a", 3, "a")
    leadership.forgets("a")
    assert leadership.epoch_of("a") == -1


def test_a_node_on_its_own_is_always_current() -> None:
    leadership = Leadership()
    assert leadership.epoch_of(ALONE) is None
    assert leadership.is_current(None)
    assert not leadership.is_before_loss(None)


def test_a_coordinator_that_was_deposed_is_not_current() -> None:
    coordinators = Coordinators()
    assert coordinators.of_group("group").is_current(coordinators.of_group("group").epoch_of("a"))
    for index in range(3):
        coordinators.partition("__consumer_offsets", index).believes("a", 1, "a")
    leadership = coordinators.of_group("group")
    epoch = leadership.epoch_of("a")
    assert leadership.is_current(epoch)
    leadership.believes("b", 2, "b")
    assert not leadership.is_current(epoch)
    assert not leadership.is_current(leadership.epoch_of("a"))
    assert leadership.is_current(leadership.epoch_of("b"))
    coordinators.forgets("b")
    assert leadership.epoch_of("b") == -1

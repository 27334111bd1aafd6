"""Admissions: who may open a transaction in a partition, and what takes that away."""

from quire.replication.admissions import Admission, Admissions

PRODUCER = 7


def take(admissions: Admissions, epoch: int, producer_id: int = PRODUCER) -> Admission:
    return admissions.take(producer_id, epoch, bumps_epoch=True)


def test_requests_that_ask_at_the_same_time_share_one() -> None:
    admissions = Admissions()
    first, second = take(admissions, 3), take(admissions, 3)
    assert first is second
    admissions.give_back(first)
    assert admissions.holds(second)
    admissions.give_back(second)
    assert not admissions.holds(second)


def test_the_end_of_a_transaction_takes_away_the_admissions_to_it() -> None:
    admissions = Admissions()
    admission = take(admissions, 3)
    admissions.end(PRODUCER, 3, bumps_epoch=False)
    assert not admissions.holds(admission)
    later = take(admissions, 3)
    assert admissions.holds(later)
    assert not admissions.holds(admission)
    admissions.give_back(admission)
    assert admissions.holds(later)


def test_the_end_of_a_transaction_takes_nothing_from_the_next_one() -> None:
    """Whose first write waits until the coordinator has the markers of the one before, and has asked already."""
    admissions = Admissions()
    ended, following = take(admissions, 3), take(admissions, 4)
    admissions.end(PRODUCER, 4, bumps_epoch=True)
    assert not admissions.holds(ended)
    assert admissions.holds(following)


def test_a_marker_that_fences_takes_away_everything_up_to_its_epoch() -> None:
    admissions = Admissions()
    older, fenced = take(admissions, 2), take(admissions, 3)
    admissions.end(PRODUCER, 4, bumps_epoch=False)
    assert not admissions.holds(older)
    assert not admissions.holds(fenced)


def test_a_replaced_producer_takes_nothing_from_its_successor() -> None:
    admissions = Admissions()
    successor = take(admissions, 5)
    admissions.give_back(take(admissions, 3))
    assert admissions.holds(successor)


def test_other_producers_are_not_concerned() -> None:
    admissions = Admissions()
    other = take(admissions, 0, producer_id=8)
    admissions.end(PRODUCER, 3, bumps_epoch=True)
    assert admissions.holds(other)

"""Verification guards: which producers may begin a transaction in a partition, and what revokes that."""

from quire.replication.verification_guards import VerificationGuard, VerificationGuards

PRODUCER = 7


def acquire(guards: VerificationGuards, epoch: int, producer_id: int = PRODUCER) -> VerificationGuard:
    return guards.acquire(producer_id, epoch, bumps_epoch=True)


def test_concurrent_requests_of_a_producer_share_a_guard() -> None:
    guards = VerificationGuards()
    first, second = acquire(guards, 3), acquire(guards, 3)
    assert first is second
    first.release()
    assert second.is_valid
    second.release()
    assert not second.is_valid


def test_the_end_of_a_transaction_revokes_its_guards() -> None:
    guards = VerificationGuards()
    guard = acquire(guards, 3)
    guards.revoke(PRODUCER, 3, bumps_epoch=False)
    assert not guard.is_valid
    later = acquire(guards, 3)
    assert later.is_valid
    assert not guard.is_valid
    guard.release()
    assert later.is_valid


def test_the_end_of_a_transaction_does_not_revoke_the_guard_of_the_next_one() -> None:
    """The first write of the next transaction waits for the markers of this one, and already has its guard."""
    guards = VerificationGuards()
    ended, following = acquire(guards, 3), acquire(guards, 4)
    guards.revoke(PRODUCER, 4, bumps_epoch=True)
    assert not ended.is_valid
    assert following.is_valid


def test_a_marker_that_fences_revokes_everything_up_to_its_epoch() -> None:
    guards = VerificationGuards()
    older, fenced = acquire(guards, 2), acquire(guards, 3)
    guards.revoke(PRODUCER, 4, bumps_epoch=False)
    assert not older.is_valid
    assert not fenced.is_valid


def test_a_fenced_producer_does_not_revoke_the_guard_of_its_successor() -> None:
    guards = VerificationGuards()
    successor = acquire(guards, 5)
    acquire(guards, 3).release()
    assert successor.is_valid


def test_guards_of_other_producers_stay_valid() -> None:
    guards = VerificationGuards()
    other = acquire(guards, 0, producer_id=8)
    guards.revoke(PRODUCER, 3, bumps_epoch=True)
    assert other.is_valid


def test_the_end_of_a_leadership_revokes_all_guards() -> None:
    guards = VerificationGuards()
    held = [acquire(guards, 0, producer_id=producer_id) for producer_id in range(3)]
    guards.revoke_all()
    assert not any(guard.is_valid for guard in held)

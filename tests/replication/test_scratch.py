"""Scratch buffers: used again, never shared, and not kept when they are large or many."""

from quire.replication.scratch import KEPT_BYTES, give_back_scratch, take_scratch


def test_a_buffer_is_used_by_one_check_at_a_time() -> None:
    first, second = take_scratch(), take_scratch()
    assert first is not second
    give_back_scratch(first)
    assert take_scratch() is first


def test_a_large_buffer_is_not_kept() -> None:
    large = bytearray(KEPT_BYTES + 1)
    give_back_scratch(large)
    assert all(take_scratch() is not large for _ in range(5))


def test_only_a_few_are_kept() -> None:
    given = [bytearray(1) for _ in range(10)]
    for scratch in given:
        give_back_scratch(scratch)
    taken = [take_scratch() for _ in range(10)]
    assert sum(any(scratch is each for each in given) for scratch in taken) <= 3


def test_a_buffer_that_is_still_viewed_is_not_used_again() -> None:
    scratch = bytearray(100)
    view = memoryview(scratch)
    give_back_scratch(scratch)
    assert take_scratch() is not scratch
    view.release()
    give_back_scratch(scratch)
    assert take_scratch() is scratch and len(scratch) == 100

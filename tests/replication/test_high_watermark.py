"""The high watermark over the in-sync replicas."""

from hypothesis import given
from hypothesis import strategies as st

from quire.replication.high_watermark import high_watermark


def test_a_leader_alone_commits_what_it_has() -> None:
    assert high_watermark(3, 10, {}, []) == 10


def test_the_slowest_in_sync_follower_holds_it() -> None:
    assert high_watermark(3, 10, {2: 7, 3: 9}, [2, 3]) == 7


def test_a_follower_outside_the_isr_does_not_hold_it() -> None:
    assert high_watermark(3, 10, {2: 4, 3: 9}, [3]) == 9


def test_a_follower_that_has_not_fetched_yet_does_not_move_the_high_watermark() -> None:
    assert high_watermark(3, 10, {}, [2]) == 3


@given(st.integers(0, 100), st.integers(0, 100), st.dictionaries(st.integers(2, 5), st.integers(0, 100)), st.data())
def test_it_never_goes_back(current: int, end: int, ends: dict[int, int], data: st.DataObject) -> None:
    isr = data.draw(st.lists(st.integers(2, 5), unique=True))
    reached = high_watermark(current, end, ends, isr)
    assert reached >= current
    assert reached == current or reached <= end

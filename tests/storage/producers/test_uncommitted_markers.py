"""Markers that are not committed: they hold the last stable offset back until they are committed or truncated."""

from quire.storage.producers.uncommitted_markers import UncommittedMarkers


def markers_at(*entries: tuple[int, int]) -> UncommittedMarkers:
    markers = UncommittedMarkers()
    for marker_offset, first_offset in entries:
        markers.appended(marker_offset, first_offset)
    return markers


def test_the_earliest_transaction_counts_for_any_order_of_markers() -> None:
    assert markers_at((10, 5), (11, 2), (12, 7)).hold_back(0) == 2


def test_a_marker_below_the_high_watermark_is_committed() -> None:
    markers = markers_at((10, 2), (11, 5))
    assert markers.hold_back(10) == 2
    assert markers.hold_back(11) == 5
    assert list(markers.entries) == [(11, 5)]
    assert markers.hold_back(12) is None
    assert not markers.entries


def test_a_marker_that_is_truncated_is_forgotten() -> None:
    markers = markers_at((10, 5), (11, 2))
    markers.truncated(12)
    assert len(markers.entries) == 2
    markers.truncated(11)
    assert list(markers.entries) == [(10, 5)]
    markers.truncated(0)
    assert not markers.entries


def test_committed_markers_are_forgotten_as_the_high_watermark_moves() -> None:
    markers = UncommittedMarkers()
    for at in range(100):
        markers.appended(3 * at, 3 * at - 2)
        markers.hold_back(3 * at)
        assert len(markers.entries) <= 2

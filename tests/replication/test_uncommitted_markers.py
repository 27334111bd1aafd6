"""Markers that are not committed: they hold the last stable offset back until they are committed or truncated."""

from quire.replication.uncommitted_markers import UncommittedMarkers


def markers_at(*entries: tuple[int, int]) -> UncommittedMarkers:
    markers = UncommittedMarkers()
    for marker_offset, first_offset in entries:
        markers.appended(marker_offset, first_offset)
    return markers


def test_the_earliest_transaction_counts_whatever_the_order_of_the_markers() -> None:
    assert markers_at((10, 5), (11, 2), (12, 7)).first_offset() == 2


def test_a_marker_below_the_high_watermark_is_committed() -> None:
    markers = markers_at((10, 5), (11, 2))
    markers.committed(10)
    assert len(markers.entries) == 2
    markers.committed(11)
    assert list(markers.entries) == [(11, 2)]
    markers.committed(12)
    assert not markers.entries


def test_a_marker_that_is_truncated_is_forgotten() -> None:
    markers = markers_at((10, 5), (11, 2))
    markers.truncated(12)
    assert len(markers.entries) == 2
    markers.truncated(11)
    assert list(markers.entries) == [(10, 5)]
    markers.truncated(0)
    assert not markers.entries

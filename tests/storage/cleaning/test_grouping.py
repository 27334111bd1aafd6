"""Which adjacent segments are cleaned into one."""

from quire.storage.cleaning.grouping import Source, group


def sources(*sizes: int, step: int = 100, index_bytes: int = 0) -> list[Source]:
    return [Source(n * step, (n + 1) * step, size, index_bytes, index_bytes) for n, size in enumerate(sizes)]


def bases(groups: list[list[Source]]) -> list[list[int]]:
    return [[source.base_offset for source in members] for members in groups]


def test_neighbours_go_together_as_long_as_they_fit() -> None:
    assert bases(group(sources(40, 60, 1, 100, 0, 30), 100, 1000)) == [[0, 100], [200], [300, 400], [500]]


def test_one_that_is_too_large_is_alone() -> None:
    assert bases(group(sources(500, 10), 100, 1000)) == [[0], [100]]
    assert group([], 100, 1000) == []


def test_full_indexes_end_a_group() -> None:
    assert bases(group(sources(1, 1, 1, 1, index_bytes=40), 100, 100)) == [[0, 100], [200, 300]]


def test_offsets_must_be_within_reach_of_the_first() -> None:
    far = 1 << 30
    assert bases(group(sources(1, 1, 1, step=far), 100, 100)) == [[0, far], [2 * far]]
    assert bases(group(sources(1, 1, 0, step=far), 100, 100)) == [[0, far, 2 * far]], (
        "of nothing nothing is out of reach"
    )

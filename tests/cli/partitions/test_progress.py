"""How far reassignments are, and the line that says it."""

from quire.cli.partitions.progress import Progress, Watched, bar, line, needed_by
from quire.client.admin.reassignments import Reassignment
from quire.client.offsets import TopicPartition

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
MOVING = {A: Reassignment((1, 2, 3), (3,), (1,)), B: Reassignment((1, 4), (4,), ())}


def test_each_new_replica_needs_what_the_largest_has() -> None:
    assert needed_by(MOVING, {(A, 1): 90, (A, 2): 100, (A, 3): 7}) == {A: {3: 100}, B: {4: 0}}


def test_bytes_count_up_to_what_was_needed_and_a_partition_that_ended_counts_whole() -> None:
    watched = Watched({A: {3: 100}, B: {4: 300}})
    assert watched.progress(MOVING, {(A, 3): 60, (B, 4): 500}) == Progress(360, 400, 0, 2)
    assert watched.progress({B: MOVING[B]}, {(B, 4): 20}) == Progress(120, 400, 1, 2)
    assert watched.progress({}, {}) == Progress(400, 400, 2, 2)


def test_without_bytes_the_partitions_count() -> None:
    assert Watched({A: {3: 0}, B: {4: 0}}).progress({B: MOVING[B]}, {}).part == 0.5
    assert Watched({}).progress({}, {}).part == 1.0


def test_the_line_says_how_long_it_still_takes() -> None:
    assert line(Progress(30_000_000, 120_000_000, 1, 4), 3.0) == (
        "25%, 1 of 4 partitions done, 30 MB of 120 MB, 10 MB/s, about 9 s left"
    )
    assert line(Progress(120, 120, 4, 4), 3.0) == "100%, 4 of 4 partitions done, 120 bytes of 120 bytes"
    assert line(Progress(0, 120, 0, 1), 0.0) == "0%, 0 of 1 partition done, 0 bytes of 120 bytes"


def test_the_bar_is_as_long_as_the_part() -> None:
    assert [bar(part).count("#") for part in (0.0, 0.5, 1.0)] == [0, 15, 30]

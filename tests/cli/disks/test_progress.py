"""How far moves are, from what a broker says about its directories."""

from quire.cli.disks.plan import make_plan
from quire.cli.disks.progress import Progress
from quire.client.admin.cluster import LogDir, ReplicaSize
from quire.client.offsets import TopicPartition


def directories(*there: ReplicaSize) -> list[LogDir]:
    here = [ReplicaSize("a", index, 1 << 20, 0) for index in range(3)]
    return [LogDir("/one", None, -1, -1, here), LogDir("/two", None, -1, -1, list(there))]


PLAN = make_plan(1, directories(), [], "/one", "/two")


def test_moved_and_copied_replicas_count() -> None:
    progress = Progress(
        PLAN,
        directories(
            ReplicaSize("a", 0, 1 << 20, 0), ReplicaSize("a", 1, 1 << 19, 5, is_future=True), ReplicaSize("b", 0, 9, 0)
        ),
    )
    assert (progress.moved, progress.left) == (1, [TopicPartition("a", 1)])
    assert progress.lost == [TopicPartition("a", 2)]
    assert progress.line(PLAN) == f"[{'#' * 15}{'-' * 15}]  50%  1 of 3 replicas, 1.5 MiB of 3.0 MiB"


def test_a_copy_that_has_grown_counts_as_much_as_was_planned() -> None:
    progress = Progress(PLAN, directories(*(ReplicaSize("a", each, 2 << 20, 0, is_future=True) for each in range(3))))
    assert progress.line(PLAN).endswith("100%  0 of 3 replicas, 3.0 MiB of 3.0 MiB")


def test_empty_replicas_count_by_number() -> None:
    here = [LogDir("/one", None, -1, -1, [ReplicaSize("a", 0, 0, 0)]), LogDir("/two", None, -1, -1, [])]
    plan = make_plan(1, here, [], "/one", "/two")
    moved = [LogDir("/one", None, -1, -1, []), LogDir("/two", None, -1, -1, [ReplicaSize("a", 0, 0, 0)])]
    assert Progress(plan, moved).line(plan).startswith(f"[{'#' * 30}] 100%  1 of 1 replica, ")

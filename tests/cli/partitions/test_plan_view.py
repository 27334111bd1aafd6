"""A plan as a person reads it."""

from quire.cli.partitions.plan_view import duration, estimate_s, plan_view, size
from quire.client.placement.model import Change, Placement

MOVED = Change(Placement("orders", 0, (1, 2), 300_000_000), (3, 2))
GROWN = Change(Placement("orders", 1, (2,), 100_000_000), (2, 3))
REORDERED = Change(Placement("orders", 2, (1, 2), 5), (2, 1))


def test_the_plan_names_what_moves_and_what_it_costs() -> None:
    assert plan_view([MOVED, GROWN, REORDERED], None).splitlines() == [
        "PARTITION  FROM  TO   COPIED",
        "orders-0   1,2   3,2  300 MB",
        "orders-1   2     2,3  100 MB",
        "orders-2   1,2   2,1  -",
        "",
        "3 partitions: 2 replicas copied (400 MB), 1 removed, 2 preferred leaders changed",
        "about 4 s at 100 MB/s for each broker",
    ]


def test_a_throttle_decides_how_long_it_takes() -> None:
    assert estimate_s([MOVED, GROWN], 1_000_000) == 400
    assert plan_view([GROWN], 1_000_000).endswith("about 1 min 40 s at 1 MB/s for each broker")


def test_a_long_plan_is_cut() -> None:
    lines = plan_view([MOVED] * 60, None).splitlines()
    assert lines[51] == "and 10 more; --json shows all"


def test_sizes_and_durations() -> None:
    assert [size(each) for each in (0, 999, 1000, 1_250_000, 3e12, 4.5e15)] == [
        "0 bytes",
        "999 bytes",
        "1 kB",
        "1.25 MB",
        "3 TB",
        "4.5e+03 TB",
    ]
    assert [duration(each) for each in (0.2, 59, 61, 7300)] == ["1 s", "59 s", "1 min 1 s", "2 h 1 min"]

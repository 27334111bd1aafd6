"""Unused offsets expire; those in use never do."""

import pytest

from quire.coordinators.group.offsets import expiry, tombstones
from tests.coordinators.group.offsets.offsets_shard import OffsetsShard, topics

A, B = ("a", 0), ("b", 1)
MINUTE_MS = 60_000
RETENTION_MS = 10 * MINUTE_MS


def shard_of() -> OffsetsShard:
    return OffsetsShard(
        {"a": 1, "b": 2},
        {"offsets.retention.minutes": "10", "offsets.retention.check.interval.ms": str(MINUTE_MS)},
    )


def test_an_offset_of_a_group_without_members_lives_as_long_as_offsets_are_retained() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5})
    shard.wait(RETENTION_MS - MINUTE_MS)
    shard.commit_offsets("g", {B: 6})
    assert shard.all_offsets("g") == {A: 5, B: 6}
    shard.wait(MINUTE_MS)
    assert shard.all_offsets("g") == {B: 6}


def test_a_group_is_deleted_with_its_last_offset() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5})
    shard.wait(RETENTION_MS)
    assert not shard.machine.groups
    shard.reload()
    assert not shard.machine.groups and shard.all_offsets("g") == {}


def test_a_topic_that_a_member_reads_keeps_its_offsets() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5, B: 6})
    shard.group("g").join("m", 1, "a")
    shard.wait(2 * RETENTION_MS)
    assert shard.all_offsets("g") == {A: 5}


def test_the_time_of_an_empty_group_begins_when_its_last_member_goes() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5})
    shard.group("g").join("m", 1, "a")
    shard.wait(2 * RETENTION_MS)
    shard.group("g").leave(shard.clock.now_ms())
    shard.wait(RETENTION_MS - MINUTE_MS)
    assert shard.all_offsets("g") == {A: 5}
    shard.wait(MINUTE_MS)
    assert shard.all_offsets("g") == {}


def test_if_it_is_unknown_what_members_read_all_offsets_stay() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5})
    group = shard.group("g")
    group.is_empty, group.unused_since_ms = False, None
    shard.wait(2 * RETENTION_MS)
    assert shard.all_offsets("g") == {A: 5}


def test_a_group_with_members_stays_without_offsets() -> None:
    shard = shard_of()
    shard.group("g").join("m", 1)
    shard.wait(2 * RETENTION_MS)
    assert list(shard.machine.groups) == ["g"]


def test_a_group_without_members_and_offsets_is_deleted_at_the_next_check() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5})
    shard.delete_offsets("g", [A])
    assert list(shard.machine.groups) == ["g"]
    shard.wait(MINUTE_MS)
    assert not shard.machine.groups


@pytest.mark.parametrize(
    ("retention_ms", "lives_ms"), [(2 * MINUTE_MS, 2 * MINUTE_MS), (20 * MINUTE_MS, 20 * MINUTE_MS)]
)
def test_a_commit_may_name_its_own_end_of_life(retention_ms: int, lives_ms: int) -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5}, retention_ms=retention_ms, version=4)
    shard.wait(lives_ms - MINUTE_MS)
    shard.reload()
    assert shard.all_offsets("g") == {A: 5}
    shard.wait(MINUTE_MS)
    assert shard.all_offsets("g") == {}


def test_offsets_that_an_open_transaction_may_change_stay_with_their_group() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5, B: 6})
    shard.commit_in_transaction("g", {A: 7}, producer_id=1)
    shard.wait(2 * RETENTION_MS)
    assert shard.all_offsets("g") == {A: 5}
    shard.end_transaction(1, 0, committed=False)
    shard.wait(MINUTE_MS)
    assert not shard.machine.groups


def test_a_group_whose_only_offset_is_in_an_open_transaction_stays() -> None:
    shard = shard_of()
    shard.commit_in_transaction("g", {A: 7}, producer_id=1)
    shard.wait(2 * RETENTION_MS)
    assert list(shard.machine.groups) == ["g"]


def test_a_clock_that_is_set_back_makes_nothing_older() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5})
    shard.clock.jump_wall(-100 * RETENTION_MS)
    shard.wait(RETENTION_MS)
    assert shard.all_offsets("g") == {A: 5}


def test_the_time_continues_across_a_restart() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5})
    shard.wait(RETENTION_MS - MINUTE_MS)
    shard.reload()
    shard.wait(MINUTE_MS)
    assert shard.all_offsets("g") == {}


@pytest.mark.parametrize("limit", ["records", "bytes", "looks"])
def test_many_expired_offsets_are_deleted_in_steps_that_fit_into_an_append(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tombstones, "MAX_RECORDS", 3 if limit == "records" else 1000)
    monkeypatch.setattr(tombstones, "MAX_BYTES", 150 if limit == "bytes" else 100_000)
    monkeypatch.setattr(expiry, "MAX_CHECKED", 3 if limit == "looks" else 1000)
    shard = OffsetsShard({}, {"offsets.retention.minutes": "10"})
    shard.image = topics({f"t{number}": 4 for number in range(3)})
    every = {(f"t{number}", partition): 1 for number in range(3) for partition in range(4)}
    for group_id in ("g", "h", "i"):
        shard.commit_offsets(group_id, every)
    shard.commit_offsets("used", every)
    shard.group("used").join("m", 1, "t0", "t1", "t2")
    shard.holding = True
    shard.wait(20 * MINUTE_MS)
    steps: list[int] = []
    while not steps or steps[-1]:
        before = len(shard.log)
        shard.commit(1)
        steps.append(len(shard.log) - before)
    assert list(shard.machine.groups) == ["used"]
    assert shard.machine.offsets.deletion("used").records and not shard.machine.offsets.deletion("g").records
    assert sum(steps) == 3 * (12 + 1)
    assert max(steps) <= {"records": 4, "bytes": 5, "looks": 13}[limit]


def test_tombstones_that_are_refused_are_tried_again_at_the_next_check() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5})
    shard.max_batch_bytes = 1
    shard.wait(2 * RETENTION_MS)
    assert shard.all_offsets("g") == {A: 5}
    shard.max_batch_bytes = None
    shard.wait(MINUTE_MS)
    assert shard.all_offsets("g") == {}


def test_group_ids_of_any_length_cannot_keep_groups_from_being_forgotten() -> None:
    shard = shard_of()
    shard.max_batch_bytes = 1_048_588
    for number in range(40):
        group_id = f"{number}".rjust(32_000, "x")
        shard.commit_offsets(group_id, {A: 5})
        shard.delete_offsets(group_id, [A])
    shard.wait(MINUTE_MS)
    assert not shard.machine.groups

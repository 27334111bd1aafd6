"""The offsets of a topic are deleted with it, and only with it."""

import pytest

from quire.coordinators.group.offsets import tombstones
from quire.coordinators.group.offsets.deleted_topics import DeletedTopics
from quire.coordinators.group.offsets.offsets import Offsets
from quire.metadata.image import ClusterImage
from tests.coordinators.group.offsets.offsets_shard import OffsetsShard, topics

A, B = ("a", 0), ("b", 0)


def shard_of() -> OffsetsShard:
    shard = OffsetsShard({"a": 1, "b": 1})
    shard.commit_offsets("g", {A: 5, B: 6})
    shard.commit_offsets("h", {A: 7})
    return shard


def change(shard: OffsetsShard, image: ClusterImage) -> None:
    shard.change_image(image)
    shard.wait(1)


def test_the_offsets_of_a_deleted_topic_go() -> None:
    shard = shard_of()
    change(shard, topics({"b": 1}))
    assert shard.all_offsets("g") == {B: 6} and shard.all_offsets("h") == {}
    shard.reload()
    assert shard.all_offsets("g") == {B: 6} and shard.all_offsets("h") == {}


def test_they_are_deleted_in_steps_that_fit_into_an_append() -> None:
    shard = OffsetsShard({"a": 100, "b": 1})
    for partition in range(100):
        shard.commit_offsets("g", {("a", partition): 5})
    shard.max_batch_bytes = 500
    change(shard, topics({"b": 1}))
    assert shard.all_offsets("g") == {}


def test_also_where_a_new_topic_has_taken_the_name_at_once() -> None:
    shard = shard_of()
    change(shard, topics({"a": 1}, incarnation=1))
    shard.image = ClusterImage()
    assert shard.all_offsets("g") == {}


def test_the_new_topics_offsets_stay() -> None:
    shard = shard_of()
    shard.change_image(topics({"a": 1}, incarnation=1))
    shard.commit_offsets("g", {A: 1})
    shard.wait(1)
    assert shard.all_offsets("g") == {A: 1} and shard.all_offsets("h") == {}


def test_pending_offsets_of_a_transaction_for_the_new_topic_stay() -> None:
    shard = shard_of()
    shard.change_image(topics({"a": 1}, incarnation=1))
    shard.commit_in_transaction("g", {A: 1}, producer_id=3)
    shard.wait(1)
    shard.end_transaction(3, 0, committed=True)
    assert shard.all_offsets("g") == {A: 1}


def test_pending_offsets_of_a_transaction_for_the_deleted_topic_are_dropped() -> None:
    shard = shard_of()
    shard.commit_in_transaction("g", {A: 9}, producer_id=3)
    change(shard, topics({"b": 1}))
    shard.end_transaction(3, 0, committed=True)
    assert shard.all_offsets("g") == {B: 6}


def test_tombstones_that_were_not_committed_before_a_failover_are_written_after_loading() -> None:
    shard = shard_of()
    shard.holding = True
    change(shard, topics({"b": 1}))
    assert shard.held
    shard.holding = False
    shard.fail()
    assert shard.all_offsets("g") == {A: 5, B: 6}
    shard.wait(1)
    shard.image = ClusterImage()
    assert shard.all_offsets("g") == {B: 6} and shard.all_offsets("h") == {}


def test_a_crash_before_the_first_tombstone_is_written_keeps_no_offsets() -> None:
    shard = shard_of()
    shard.image = topics({"b": 1})
    shard.reload()
    shard.wait(1)
    assert shard.all_offsets("g") == {B: 6} and shard.all_offsets("h") == {}


def test_a_crash_before_the_first_tombstone_keeps_what_belongs_to_a_new_topic_of_the_same_name() -> None:
    shard = shard_of()
    shard.commit_offsets("old client", {A: 8}, version=4, retention_ms=10_000)
    shard.image = topics({"a": 1, "b": 1}, incarnation=1)
    shard.commit_offsets("h", {A: 9})
    shard.reload()
    shard.wait(1)
    shard.image = ClusterImage()
    assert [shard.all_offsets(group_id) for group_id in ("g", "h", "old client")] == [{}, {A: 9}, {A: 8}]


def test_tombstones_that_are_refused_are_written_later() -> None:
    shard = shard_of()
    shard.max_batch_bytes = 1
    change(shard, topics({"b": 1}))
    assert shard.all_offsets("g") == {A: 5, B: 6}
    shard.max_batch_bytes = None
    change(shard, topics({"b": 1, "c": 1}))
    assert shard.all_offsets("g") == {B: 6} and shard.all_offsets("h") == {}


def test_the_offset_that_waited_for_a_transaction_of_the_new_topic_goes_when_that_is_aborted() -> None:
    shard = shard_of()
    shard.change_image(topics({"a": 1, "b": 1}, incarnation=1))
    shard.commit_in_transaction("g", {A: 1}, producer_id=3)
    shard.wait(1)
    shard.end_transaction(3, 0, committed=False)
    shard.wait(1)
    shard.image = ClusterImage()
    assert shard.all_offsets("g") == {}


def test_a_topic_that_this_node_does_not_know_yet_is_not_a_deleted_one() -> None:
    """Offsets without a topic id."""
    shard = OffsetsShard({"a": 1, "b": 1})
    shard.commit_offsets("g", {A: 5, B: 6}, version=4, retention_ms=10_000)
    shard.image = ClusterImage()
    shard.reload()
    change(shard, topics({"b": 1}))
    assert shard.all_offsets("g") == {A: 5, B: 6}
    change(shard, topics({"a": 1, "b": 1}))
    change(shard, topics({"b": 1}))
    assert shard.all_offsets("g") == {B: 6}


def test_a_topic_that_is_deleted_while_its_offsets_are_loaded_is_noticed_at_the_end() -> None:
    shard = shard_of()
    loaded = Offsets.loaded

    def delete_before(offsets: Offsets) -> None:
        shard.image = topics({"b": 1})
        loaded(offsets)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Offsets, "loaded", delete_before)
        shard.reload()
    shard.wait(1)
    assert shard.all_offsets("g") == {B: 6}


def test_other_changes_of_metadata_write_nothing() -> None:
    shard = shard_of()
    before = len(shard.log)
    change(shard, topics({"a": 3, "b": 1, "c": 1}))
    assert len(shard.log) == before


def test_many_offsets_are_deleted_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tombstones, "MAX_RECORDS", 3)
    shard = OffsetsShard({"a": 4, "b": 1})
    for group_id in ("g", "h", "i"):
        shard.commit_offsets(group_id, {("a", partition): 1 for partition in range(4)} | {B: 1})
    change(shard, topics({"b": 1}))
    assert [shard.all_offsets(group_id) for group_id in ("g", "h", "i")] == [{B: 1}] * 3


def test_only_topics_that_changed_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every shard is notified of every change, and may have offsets of thousands of topics."""
    shard = OffsetsShard({f"t{number}": 1 for number in range(100)})
    shard.commit_offsets("g", {(f"t{number}", 0): 1 for number in range(100)})
    looked_at: list[str] = []
    id_now = DeletedTopics._current_id

    def watched(deleted_topics: DeletedTopics, topic: str) -> bytes:
        looked_at.append(topic)
        return id_now(deleted_topics, topic)

    monkeypatch.setattr(DeletedTopics, "_current_id", watched)
    change(shard, topics({f"t{number}": 1 for number in range(99)} | {"unknown": 1}))
    assert set(looked_at) == {"t99", "unknown"}
    assert len(shard.all_offsets("g")) == 99

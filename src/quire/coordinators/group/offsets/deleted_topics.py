"""Forgets the offsets of topics that are deleted, also where a new one has taken the name.

What counts is that a topic was there and is not any more: a topic that was never seen may be one that this node has not
heard of yet, and its offsets stay.
"""

from collections.abc import Iterable

from quire.coordinators.group.offsets.committed import NO_TOPIC_ID
from quire.coordinators.group.offsets.store import OffsetStore
from quire.coordinators.group.offsets.tombstones import TombstoneStep
from quire.coordinators.runtime.machine import Surroundings
from quire.coordinators.runtime.result import Result

_TIMER = "delete offsets of deleted topics"


class DeletedTopics:
    __slots__ = ("_gone", "_seen", "_store", "_surroundings")

    def __init__(self, store: OffsetStore, surroundings: Surroundings) -> None:
        self._store = store
        self._surroundings = surroundings
        self._seen: dict[str, bytes] = {}
        """The id under which each topic with offsets was seen last; NO_TOPIC_ID for those that never were."""
        self._gone: dict[tuple[str, bytes], None] = {}

    def remember(self, topic: str) -> None:
        """There is an offset of this topic."""
        if topic not in self._seen:
            self._seen[topic] = self._id_now(topic)

    def look_again(self) -> None:
        """Any topic may be another than at the last look."""
        self.look_again_at(self._seen)

    def look_again_at(self, topics: Iterable[str]) -> None:
        """These may be others than at the last look: there may be thousands, and a change is mostly one of a few."""
        for topic in topics:
            seen_id, id_now = self._seen.get(topic), self._id_now(topic)
            if seen_id is not None and id_now != seen_id:
                self._seen[topic] = id_now
                if seen_id != NO_TOPIC_ID:
                    self._gone[topic, seen_id] = None
        if self._gone:
            self._surroundings.timers.schedule(_TIMER, 0, self._delete)

    def _id_now(self, topic: str) -> bytes:
        image = self._surroundings.image().topic(topic)
        return NO_TOPIC_ID if image is None else image.topic_id

    def _delete(self, _now_ms: int) -> Result[None]:
        step = TombstoneStep(self._surroundings.max_batch_bytes())
        for topic, topic_id in list(self._gone):
            self._delete_topic(topic, topic_id, step)
            if step.is_full:
                self._surroundings.timers.schedule(_TIMER, 0, self._delete)
                break
            self._forget(topic, topic_id)
        return Result(None, step.records)

    def _forget(self, topic: str, topic_id: bytes) -> None:
        del self._gone[topic, topic_id]
        self._store.forget_topic_id(topic_id)
        if self._seen.get(topic) == NO_TOPIC_ID:
            del self._seen[topic]

    def _delete_topic(self, topic: str, topic_id: bytes, step: TombstoneStep) -> None:
        for group_id in self._store.group_ids():
            for partition in self._store.partitions_of_topic(group_id, topic):
                if step.is_full:
                    return
                # A tombstone ends all there is: it has to wait where the new topic's first commit is among it.
                if all(of in (NO_TOPIC_ID, topic_id) for of in self._store.topic_ids_of(group_id, topic, partition)):
                    step.add(group_id, topic, partition)

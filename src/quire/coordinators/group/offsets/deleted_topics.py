"""Deletes the offsets of deleted topics, also if a new topic has the same name.

An offset has the id of its topic. If the metadata does not have that topic, the topic is deleted: offsets are committed
only for topics that exist, and the metadata of a coordinator is never older than that of the coordinators before it.
So nothing has to be remembered: a coordinator that crashes before the tombstones are committed, or that loads its log
again, finds the remaining offsets by their ids.

Offsets that older versions wrote have no id. They are deleted with the topic that had their name until then; a topic
that was never seen may be one that no longer exists, or one that this node does not know yet, so its offsets are kept.
"""

from collections.abc import Iterable

from quire.coordinators.group.offsets.committed import NO_TOPIC_ID
from quire.coordinators.group.offsets.store import OffsetStore
from quire.coordinators.group.offsets.tombstones import TombstoneStep
from quire.coordinators.runtime.machine import MachineEnvironment
from quire.coordinators.runtime.result import CoordinatorResult
from quire.protocol.errors import ErrorCode

_TIMER = "delete offsets of deleted topics"

_Deleted = tuple[str, bytes]
"""(topic, topic id)"""


class DeletedTopics:
    __slots__ = ("_deleted", "_environment", "_ids", "_seen", "_store")

    def __init__(self, store: OffsetStore, environment: MachineEnvironment) -> None:
        self._store = store
        self._environment = environment
        self._ids: dict[str, set[bytes]] = {}
        """The topic ids of the offsets, by topic."""
        self._seen: dict[str, bytes] = {}
        """The last known id of each topic with offsets; NO_TOPIC_ID if it was never seen."""
        self._deleted: dict[_Deleted, bool] = {}
        """Topics with offsets that are not deleted yet, and whether offsets without an id are among them."""

    def remember(self, topic: str, topic_id: bytes) -> None:
        """A group has an offset of this topic."""
        ids = self._ids.get(topic)
        if ids is None:
            ids = self._ids[topic] = set()
            self._seen[topic] = self._current_id(topic)
        ids.add(topic_id)

    def check_all(self) -> None:
        """Checks all topics with offsets."""
        self.check_topics(self._seen)

    def check_topics(self, topics: Iterable[str]) -> None:
        """Checks only these topics: there may be thousands with offsets, and most changes affect a few."""
        for topic in topics:
            seen_id, current_id = self._seen.get(topic), self._current_id(topic)
            if seen_id is None:
                continue
            if current_id != seen_id:
                self._seen[topic] = current_id
                if seen_id != NO_TOPIC_ID:
                    self._deleted[topic, seen_id] = True
            for topic_id in self._ids[topic] - {current_id, NO_TOPIC_ID}:
                self._deleted.setdefault((topic, topic_id), False)
        self.continue_deletion()

    def continue_deletion(self) -> None:
        """A transaction has ended, and offsets may have waited for that; or there are more deleted topics."""
        if self._deleted:
            self._environment.timers.schedule(_TIMER, 0, self._delete)

    def _current_id(self, topic: str) -> bytes:
        image = self._environment.image().topic(topic)
        return NO_TOPIC_ID if image is None else image.topic_id

    def _delete(self, _now_ms: int) -> CoordinatorResult[None]:
        step = TombstoneStep(self._environment.max_batch_bytes())
        finished: list[_Deleted] = []
        for (topic, topic_id), with_offsets_without_id in self._deleted.items():
            ids = {topic_id, NO_TOPIC_ID} if with_offsets_without_id else {topic_id}
            nothing_waits = self._delete_topic(topic, ids, step)
            if step.is_full:
                self._environment.timers.schedule(_TIMER, 0, self._delete)
                break
            if nothing_waits:
                finished.append((topic, topic_id))

        def written(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                for deleted in finished:
                    self._forget(deleted)
            elif code is ErrorCode.MESSAGE_TOO_LARGE:
                self._environment.timers.cancel(_TIMER)  # the log would refuse the next step, too

        return CoordinatorResult(None, step.records, when_written=written)

    def _forget(self, deleted: _Deleted) -> None:
        topic, topic_id = deleted
        ids = self._ids.get(topic, set())
        ids.discard(topic_id)
        if self._deleted.pop(deleted, False):
            ids.discard(NO_TOPIC_ID)
        self._store.forget_topic_id(topic_id)
        if not ids and self._seen.get(topic) == NO_TOPIC_ID:
            del self._seen[topic], self._ids[topic]

    def _delete_topic(self, topic: str, ids: set[bytes], step: TombstoneStep) -> bool:
        """Deletes the offsets with these topic ids, as far as the step has room; false if one of them has to wait."""
        nothing_waits = True
        for group_id in self._store.group_ids():
            for partition in self._store.partitions_of_topic(group_id, topic):
                if step.is_full:
                    return False
                found = self._store.topic_ids_of(group_id, topic, partition)
                if ids.issuperset(found):
                    step.add(group_id, topic, partition)
                elif not ids.isdisjoint(found):
                    # A tombstone deletes every offset of the partition. One belongs to another topic, and a transaction
                    # is open: when it ends, only one of them is left.
                    nothing_waits = False
        return nothing_waits

"""OffsetFetch for one group: what it has committed, of the partitions that are asked for or of all.

Who was never heard of, group or partition, has offset -1 and no error. An offset that was committed for a topic which
was deleted since, and created anew, is none of the new topic's.
"""

from collections.abc import Iterable

from quire.coordinators.group.group import Groups
from quire.coordinators.group.offsets.commit import TOPIC_IDS_SINCE
from quire.coordinators.group.offsets.committed import NO_TOPIC_ID, CommittedOffset
from quire.coordinators.group.offsets.store import OffsetStore
from quire.metadata.image import ClusterImage, TopicImage
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

NO_OFFSET = -1


def fetch_offsets(
    store: OffsetStore,
    groups: Groups,
    image: ClusterImage,
    request: OffsetFetchRequestGroup,
    *,
    require_stable: bool,
    api_version: int,
) -> OffsetFetchResponseGroup:
    """ApiError when a member asks that is none, or has an old epoch."""
    group = groups.get(request.group_id)
    if group is not None:
        group.check_offset_fetch(request.member_id, request.member_epoch)
    fetch = _Fetch(store, image, request.group_id, require_stable, api_version >= TOPIC_IDS_SINCE)
    topics = fetch.everything() if request.topics is None else fetch.asked_for(request.topics)
    return OffsetFetchResponseGroup(group_id=request.group_id, topics=topics)


class _Fetch:
    __slots__ = ("_by_id", "_group_id", "_image", "_require_stable", "_store")

    def __init__(
        self, store: OffsetStore, image: ClusterImage, group_id: str, require_stable: bool, by_id: bool
    ) -> None:
        self._store = store
        self._image = image
        self._group_id = group_id
        self._require_stable = require_stable
        self._by_id = by_id

    def everything(self) -> list[OffsetFetchResponseTopics]:
        answers = []
        for name, offsets in self._store.committed.topics_of(self._group_id).items():
            topic = self._image.topic(name)
            if topic is None and self._by_id:
                continue  # There is no other way to name it.
            kept = {partition: offset for partition, offset in offsets.items() if not _is_of_another(offset, topic)}
            if kept:
                partitions = [self._answer(name, partition, offset) for partition, offset in kept.items()]
                topic_id = NO_TOPIC_ID if topic is None else topic.topic_id
                answers.append(OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=partitions))
        return answers

    def asked_for(self, topics: Iterable[OffsetFetchRequestTopics]) -> list[OffsetFetchResponseTopics]:
        return [self._topic(topic) for topic in topics]

    def _topic(self, asked: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
        topic = self._image.topic_by_id(asked.topic_id) if self._by_id else self._image.topic(asked.name)
        if topic is None and self._by_id:
            partitions = [_nothing(partition, ErrorCode.UNKNOWN_TOPIC_ID) for partition in asked.partition_indexes]
        else:
            name = asked.name if topic is None else topic.name
            offsets = self._store.committed.topics_of(self._group_id).get(name, {})
            partitions = []
            for partition in asked.partition_indexes:
                offset = offsets.get(partition)
                if offset is not None and _is_of_another(offset, topic):
                    offset = None
                partitions.append(self._answer(name, partition, offset))
        return OffsetFetchResponseTopics(name=asked.name, topic_id=asked.topic_id, partitions=partitions)

    def _answer(self, topic: str, partition: int, offset: CommittedOffset | None) -> OffsetFetchResponsePartitions:
        if self._require_stable and self._store.is_pending(self._group_id, topic, partition):
            return _nothing(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        if offset is None:
            return _nothing(partition, ErrorCode.NONE)
        return OffsetFetchResponsePartitions(
            partition_index=partition,
            committed_offset=offset.offset,
            committed_leader_epoch=offset.leader_epoch,
            metadata=offset.metadata,
        )


def _is_of_another(offset: CommittedOffset, topic: TopicImage | None) -> bool:
    """Whether it was committed for a topic of the same name that has made room for `topic`."""
    return topic is not None and offset.topic_id not in (NO_TOPIC_ID, topic.topic_id)


def _nothing(partition: int, error: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=partition, committed_offset=NO_OFFSET, metadata="", error_code=error
    )

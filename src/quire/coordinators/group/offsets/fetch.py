"""OffsetFetch for one group: the committed offsets of the requested partitions, or of all.

An unknown group or partition has offset -1 and no error. An offset of a deleted topic does not count for a new topic
with the same name.
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
    """ApiError if the request is from an unknown member, or has an old epoch."""
    group = groups.get(request.group_id)
    if group is not None:
        group.check_offset_fetch(request.member_id, request.member_epoch)
    fetch = _Fetch(store, image, request.group_id, require_stable, api_version >= TOPIC_IDS_SINCE)
    topics = fetch.all_topics() if request.topics is None else fetch.requested(request.topics)
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

    def all_topics(self) -> list[OffsetFetchResponseTopics]:
        responses = []
        for name, offsets in self._store.committed.topics_of(self._group_id).items():
            topic = self._image.topic(name)
            if topic is None and self._by_id:
                continue  # The response can name a topic only by its id.
            kept = {
                partition: offset for partition, offset in offsets.items() if not _is_of_deleted_topic(offset, topic)
            }
            if kept:
                partitions = [self._partition(name, partition, offset) for partition, offset in kept.items()]
                topic_id = NO_TOPIC_ID if topic is None else topic.topic_id
                responses.append(OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=partitions))
        return responses

    def requested(self, topics: Iterable[OffsetFetchRequestTopics]) -> list[OffsetFetchResponseTopics]:
        return [self._topic(topic) for topic in topics]

    def _topic(self, topic_request: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
        topic = (
            self._image.topic_by_id(topic_request.topic_id) if self._by_id else self._image.topic(topic_request.name)
        )
        if topic is None and self._by_id:
            partitions = [
                _no_offset(partition, ErrorCode.UNKNOWN_TOPIC_ID) for partition in topic_request.partition_indexes
            ]
        else:
            name = topic_request.name if topic is None else topic.name
            offsets = self._store.committed.topics_of(self._group_id).get(name, {})
            partitions = []
            for partition in topic_request.partition_indexes:
                offset = offsets.get(partition)
                if offset is not None and _is_of_deleted_topic(offset, topic):
                    offset = None
                partitions.append(self._partition(name, partition, offset))
        return OffsetFetchResponseTopics(
            name=topic_request.name, topic_id=topic_request.topic_id, partitions=partitions
        )

    def _partition(self, topic: str, partition: int, offset: CommittedOffset | None) -> OffsetFetchResponsePartitions:
        if self._require_stable and self._store.is_pending(self._group_id, topic, partition):
            return _no_offset(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        if offset is None:
            return _no_offset(partition, ErrorCode.NONE)
        return OffsetFetchResponsePartitions(
            partition_index=partition,
            committed_offset=offset.offset,
            committed_leader_epoch=offset.leader_epoch,
            metadata=offset.metadata,
        )


def _is_of_deleted_topic(offset: CommittedOffset, topic: TopicImage | None) -> bool:
    """Whether it was committed for an earlier topic with the same name."""
    return topic is not None and offset.topic_id not in (NO_TOPIC_ID, topic.topic_id)


def _no_offset(partition: int, error: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=partition, committed_offset=NO_OFFSET, metadata="", error_code=error
    )

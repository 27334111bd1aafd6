"""Topic partitions, and offsets in them by time: ListOffsets, with the beginning and the end as special times."""

from collections.abc import Mapping
from typing import NamedTuple

from quire.client.cluster import Cluster
from quire.client.leaders import ask_leaders
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from quire.steps import Steps

LATEST = -1
EARLIEST = -2


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetAt(NamedTuple):
    """The offset of the first record at or after a time; -1 if there is none."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, isolation_level: int = 0
) -> Steps[dict[TopicPartition, OffsetAt]]:
    """The offset of the first record at or after each timestamp (or EARLIEST, LATEST), with one request per leader.

    It retries while leaders move; when the cluster's request time-out is over, it raises the last error.
    """

    def build(topic_partitions: list[TopicPartition]) -> ListOffsetsRequest:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for topic_partition in topic_partitions:
            topics.setdefault(topic_partition.topic, []).append(
                ListOffsetsPartition(
                    partition_index=topic_partition.partition,
                    current_leader_epoch=cluster.metadata.leader_epoch(*topic_partition),
                    timestamp=wanted[topic_partition],
                )
            )
        return ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=[ListOffsetsTopic(name=name, partitions=parts) for name, parts in topics.items()],
            timeout_ms=int(cluster.request_timeout_ms),
        )

    found: dict[TopicPartition, OffsetAt] = {}
    results = yield from ask_leaders(cluster, list(wanted), build, ListOffsetsResponse, _read)
    for topic_partition, result in results.items():
        if isinstance(result, ApiError):
            raise result
        found[topic_partition] = result
    return found


def _read(response: ListOffsetsResponse) -> dict[TopicPartition, OffsetAt | ApiError]:
    results: dict[TopicPartition, OffsetAt | ApiError] = {}
    for topic in response.topics:
        for answer in topic.partitions:
            topic_partition = TopicPartition(topic.name, answer.partition_index)
            if answer.error_code:
                results[topic_partition] = ApiError(
                    ErrorCode(answer.error_code), f"the offsets of {topic_partition} cannot be listed"
                )
            else:
                results[topic_partition] = OffsetAt(answer.offset, answer.timestamp, answer.leader_epoch)
    return results

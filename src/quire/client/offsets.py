"""Where things are in a partition: offsets by time, the beginning, the end (ListOffsets)."""

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
    """An offset found; -1 where nothing is that late."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, isolation_level: int = 0
) -> Steps[dict[TopicPartition, OffsetAt]]:
    """The offset of the first record at or after each timestamp (or EARLIEST, LATEST), one request per leader.

    While leaders move it asks again; after the cluster's request timeout it raises what the last answer said.
    """

    def build(places: list[TopicPartition]) -> ListOffsetsRequest:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for place in places:
            topics.setdefault(place.topic, []).append(
                ListOffsetsPartition(
                    partition_index=place.partition,
                    current_leader_epoch=cluster.metadata.leader_epoch(*place),
                    timestamp=wanted[place],
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
    for place, result in results.items():
        if isinstance(result, ApiError):
            raise result
        found[place] = result
    return found


def _read(response: ListOffsetsResponse) -> dict[TopicPartition, OffsetAt | ApiError]:
    results: dict[TopicPartition, OffsetAt | ApiError] = {}
    for topic in response.topics:
        for answer in topic.partitions:
            place = TopicPartition(topic.name, answer.partition_index)
            if answer.error_code:
                results[place] = ApiError(ErrorCode(answer.error_code), f"the offsets of {place} could not be had")
            else:
                results[place] = OffsetAt(answer.offset, answer.timestamp, answer.leader_epoch)
    return results

"""Where things are in a partition: offsets by time, the beginning, the end (ListOffsets)."""

from collections.abc import Mapping
from typing import NamedTuple

from quire.client.backoff import Backoff
from quire.client.cluster import Cluster
from quire.client.errors import ClientError
from quire.client.steps import Steps, gather, sleep
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

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
    found: dict[TopicPartition, OffsetAt] = {}
    missing = dict(wanted)
    backoff = Backoff(cluster.random)
    deadline_ms = cluster.clock.monotonic_ms() + cluster.request_timeout_ms
    while missing:
        failure = yield from _ask_leaders(cluster, missing, isolation_level, found)
        missing = {place: timestamp for place, timestamp in missing.items() if place not in found}
        if not missing:
            break
        assert failure is not None, "a broker left a partition out of its answer"
        retriable = isinstance(failure, ClientError) or failure.code.retriable
        if not retriable or cluster.clock.monotonic_ms() > deadline_ms:
            raise failure
        yield from sleep(cluster.clock, backoff.next_ms())
        yield from cluster.refresh(sorted({place.topic for place in missing}))
    return found


def _ask_leaders(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, int],
    isolation_level: int,
    found: dict[TopicPartition, OffsetAt],
) -> Steps[ApiError | ClientError | None]:
    """One round: fills `found` and returns the last failure."""
    failure: ApiError | ClientError | None = None
    by_leader: dict[int, dict[str, list[ListOffsetsPartition]]] = {}
    for place, timestamp in wanted.items():
        leader = cluster.metadata.leader(*place)
        if leader is None:
            failure = ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"{place} has no leader now")
            continue
        by_leader.setdefault(leader, {}).setdefault(place.topic, []).append(
            ListOffsetsPartition(
                partition_index=place.partition,
                current_leader_epoch=cluster.metadata.leader_epoch(*place),
                timestamp=timestamp,
            )
        )
    calls = [
        cluster.call(
            leader,
            ListOffsetsRequest(
                replica_id=-1,
                isolation_level=isolation_level,
                topics=[ListOffsetsTopic(name=name, partitions=parts) for name, parts in topics.items()],
                timeout_ms=int(cluster.request_timeout_ms),
            ),
        )
        for leader, topics in by_leader.items()
    ]
    for outcome in (yield gather(calls)):
        if isinstance(outcome, ClientError):
            failure = outcome
            continue
        assert isinstance(outcome, ListOffsetsResponse)
        for topic in outcome.topics:
            for answer in topic.partitions:
                place = TopicPartition(topic.name, answer.partition_index)
                if answer.error_code:
                    failure = ApiError(ErrorCode(answer.error_code), f"the offsets of {place} could not be had")
                else:
                    found[place] = OffsetAt(answer.offset, answer.timestamp, answer.leader_epoch)
    return failure

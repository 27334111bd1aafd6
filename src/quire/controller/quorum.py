"""DescribeQuorum: the metadata quorum as its leader sees it."""

from math import inf

from quire.protocol.errors import ErrorCode
from quire.protocol.internal_topics import CLUSTER_METADATA
from quire.protocol.messages import describe_quorum as messages
from quire.raft.metadata_log import MetadataLog
from quire.raft.progress import ReplicaProgress
from quire.seams import Clock


def describe_quorum(
    log: MetadataLog, clock: Clock, request: messages.DescribeQuorumRequest
) -> messages.DescribeQuorumResponse:
    asked = [(topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics]
    if asked != [(CLUSTER_METADATA, [0])]:
        return _all_unknown(request)
    partition = messages.DescribeQuorumResponsePartitionData(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if log.is_leader:
        partition = _partition(log, clock)
    return messages.DescribeQuorumResponse(
        topics=[messages.DescribeQuorumResponseTopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        nodes=[
            messages.Node(
                node_id=voter.key.id,
                listeners=[
                    messages.Listener(name=each.name, host=each.host, port=each.port) for each in voter.endpoints
                ],
            )
            for voter in log.voters
        ],
    )


def _all_unknown(request: messages.DescribeQuorumRequest) -> messages.DescribeQuorumResponse:
    """Only partition 0 of the metadata log has a quorum."""
    return messages.DescribeQuorumResponse(
        topics=[
            messages.DescribeQuorumResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    messages.DescribeQuorumResponsePartitionData(
                        partition_index=each.partition_index,
                        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        error_message=f"only partition 0 of {CLUSTER_METADATA} has a quorum",
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _partition(log: MetadataLog, clock: Clock) -> messages.DescribeQuorumResponsePartitionData:
    view = log.view()
    return messages.DescribeQuorumResponsePartitionData(
        leader_id=-1 if view.leader_id is None else view.leader_id,
        leader_epoch=view.epoch,
        high_watermark=-1 if view.high_watermark is None else view.high_watermark,
        current_voters=[_replica(each, log, clock) for each in view.voters],
        observers=[_replica(each, log, clock) for each in view.observers],
    )


def _replica(progress: ReplicaProgress, log: MetadataLog, clock: Clock) -> messages.ReplicaState:
    is_leader = progress.key.id == log.leader_id

    def wall_ms(at_ms: float) -> int:
        if is_leader:
            return clock.now_ms()
        return -1 if at_ms == -inf else int(clock.now_ms() - (clock.monotonic_ms() - at_ms))

    return messages.ReplicaState(
        replica_id=progress.key.id,
        replica_directory_id=progress.key.directory_id,
        log_end_offset=log.next_offset if is_leader else progress.end_offset,
        last_fetch_timestamp=wall_ms(progress.fetched_at_ms),
        last_caught_up_timestamp=wall_ms(progress.caught_up_at_ms),
    )

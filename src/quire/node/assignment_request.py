"""The request that tells the controller in which directory each replica of a broker is (AssignReplicasToDirs)."""

from collections.abc import Mapping, Sequence

from quire.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)

MOST_REPLICAS = 2_000
"""Of one request."""


def assignment_request(
    node_id: int, epoch: int, by_directory: Mapping[bytes, Mapping[bytes, Sequence[int]]]
) -> AssignReplicasToDirsRequest:
    return AssignReplicasToDirsRequest(
        broker_id=node_id,
        broker_epoch=epoch,
        directories=[
            AssignReplicasToDirsRequestDirectoryData(
                id=directory,
                topics=[
                    AssignReplicasToDirsRequestTopicData(
                        topic_id=topic_id,
                        partitions=[AssignReplicasToDirsRequestPartitionData(partition_index=each) for each in indexes],
                    )
                    for topic_id, indexes in topics.items()
                ],
            )
            for directory, topics in by_directory.items()
        ],
    )

"""AssignReplicasToDirs: a broker reports in which of its data directories each of its replicas is (KIP-858).

The controller needs that to know which replicas are gone when a directory fails. A replica in a directory that has
failed already, because the report was overtaken, leaves the ISR and its leadership at once. So does a replica whose old
directory is gone: it is a new and empty one. A partition that waited for such a replica, and has no other, gets its
leader.
"""

from quire.config.broker_config import BrokerConfig
from quire.controller import elections
from quire.controller.controller_result import ControllerResult, check_record_count
from quire.metadata.features import has_directories
from quire.metadata.image import BrokerImage, ClusterImage, PartitionImage
from quire.metadata.partition_image import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages import assign_replicas_to_dirs as messages
from quire.protocol.messages.metadata_records import PartitionChangeRecord
from quire.protocol.schema import Message


def assign_replicas_to_dirs(
    image: ClusterImage, config: BrokerConfig, request: messages.AssignReplicasToDirsRequest
) -> ControllerResult[messages.AssignReplicasToDirsResponse]:
    """Each replica is assigned or refused on its own."""
    try:
        broker = _sender(image, request)
    except ApiError as error:
        return ControllerResult(messages.AssignReplicasToDirsResponse(error_code=error.code))
    response = messages.AssignReplicasToDirsResponse()
    records: list[Message] = []
    for directory in request.directories:
        described = messages.AssignReplicasToDirsResponseDirectoryData(id=directory.id)
        for topic in directory.topics:
            results = messages.AssignReplicasToDirsResponseTopicData(topic_id=topic.topic_id)
            for each in topic.partitions:
                code = ErrorCode.NONE
                try:
                    records += _assign(image, config, broker, directory.id, topic.topic_id, each.partition_index)
                except ApiError as error:
                    code = error.code
                results.partitions.append(
                    messages.AssignReplicasToDirsResponsePartitionData(
                        partition_index=each.partition_index, error_code=code
                    )
                )
            described.topics.append(results)
        response.directories.append(described)
    return ControllerResult(response, records)


def _sender(image: ClusterImage, request: messages.AssignReplicasToDirsRequest) -> BrokerImage:
    if not has_directories(image.metadata_version):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "the metadata.version is too low for this")
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {request.broker_id}")
    if broker.epoch != request.broker_epoch:
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH, f"broker {broker.broker_id} has registered again")
    check_record_count(sum(len(topic.partitions) for each in request.directories for topic in each.topics))
    return broker


def _assign(
    image: ClusterImage, config: BrokerConfig, broker: BrokerImage, directory: bytes, topic_id: bytes, index: int
) -> list[Message]:
    topic = image.topic_by_id(topic_id)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id")
    partition = topic.partitions.get(index)
    if partition is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {index} of {topic.name}")
    if broker.broker_id not in partition.replicas:
        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {broker.broker_id} has no replica of it")
    if directory == UNASSIGNED_DIRECTORY:
        raise ApiError(ErrorCode.INVALID_REQUEST, "this is not a directory's id")
    records: list[Message] = []
    if _directory_of(partition, broker.broker_id) != directory:
        records.append(
            PartitionChangeRecord(
                partition_id=index,
                topic_id=topic_id,
                directories=[
                    directory if replica == broker.broker_id else held
                    for replica, held in zip(partition.replicas, partition.directories, strict=True)
                ],
            )
        )
    change = None
    if directory not in broker.log_dirs or _directory_of(partition, broker.broker_id) == LOST_DIRECTORY:
        # A missing folder was most likely never created, because the broker was killed just after the topic came.
        # Then all replicas may be new, and no other one has more records than the last leader.
        change = elections.replica_lost(image, config, topic, index, broker.broker_id)
    elif elections.lost_its_directory(image, partition, broker.broker_id):
        change = elections.replica_emptied(image, config, topic, index, broker.broker_id)
    if change is None and directory in broker.log_dirs:
        change = elections.replica_found(image, config, topic, index, broker.broker_id)
    return records if change is None else [*records, change]


def _directory_of(partition: PartitionImage, broker_id: int) -> bytes:
    return partition.directories[partition.replicas.index(broker_id)]

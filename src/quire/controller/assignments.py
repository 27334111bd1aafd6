"""The replicas of new partitions: given by hand or placed, and the records that create them."""

from collections.abc import Sequence

from quire.metadata.features import has_directories
from quire.metadata.image import ClusterImage, PartitionImage
from quire.metadata.partition_image import NO_LEADER, UNASSIGNED_DIRECTORY
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.metadata_records import PartitionRecord


def check_assignment(image: ClusterImage, replicas: Sequence[int], replication_factor: int | None) -> None:
    """What is wrong with the replicas that the request names for a new partition, if anything."""
    check_replicas(image, replicas)
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _invalid(f"the assignment gives a partition {len(replicas)} replicas and the others {replication_factor}")
    if not any(image.brokers[broker_id].is_active for broker_id in replicas):
        raise _invalid(f"all brokers in the assignment {list(replicas)} are fenced or shutting down")


def check_replicas(image: ClusterImage, replicas: Sequence[int]) -> None:
    """The brokers need not be up: a replica may be moved to one that will be."""
    if not replicas:
        raise _invalid("the assignment of a partition has no replicas")
    for broker_id in replicas:
        if broker_id not in image.brokers:
            raise _invalid(f"the assignment names broker {broker_id}, which is not registered")
        if replicas.count(broker_id) > 1:
            raise _invalid(f"the assignment names broker {broker_id} more than once")


def new_partition(image: ClusterImage, topic_id: bytes, index: int, replicas: Sequence[int]) -> PartitionRecord:
    """The ISR is the replicas that are up; the first of them leads."""
    isr = tuple(broker_id for broker_id in replicas if image.brokers[broker_id].is_active)
    version = 1 if has_directories(image.metadata_version) else 0
    partition = PartitionImage(
        replicas=tuple(replicas),
        isr=isr,
        leader=isr[0] if isr else NO_LEADER,
        directories=tuple(
            image.brokers[broker_id].directory_for_new_replicas() or UNASSIGNED_DIRECTORY for broker_id in replicas
        ),
    )
    return partition.to_record(topic_id, index, version)


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)

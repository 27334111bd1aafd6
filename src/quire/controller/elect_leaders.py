"""ElectLeaders: an operator asks for the preferred leader of partitions, or for any leader (KIP-460).

A preferred election gives the leadership back to the first replica, which must be up and in the ISR. An unclean one
gives a leader to a partition that has none, even if all replicas that are up lack acknowledged records.

Without a list the request is about every partition of the cluster, and the response leaves out those that needed no
election.
"""

from collections.abc import Iterator

from quire.config.broker_config import BrokerConfig
from quire.controller import elections
from quire.controller.controller_result import Portions
from quire.metadata.image import ClusterImage, PartitionImage, TopicImage
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from quire.protocol.messages.metadata_records import PartitionChangeRecord

PREFERRED = 0
UNCLEAN = 1


def elect_leaders(
    image: ClusterImage, config: BrokerConfig, request: ElectLeadersRequest
) -> Portions[ElectLeadersResponse]:
    """Each partition has its own result, and is judged by the image as it is at its turn."""
    if request.election_type not in (PREFERRED, UNCLEAN):
        error = ApiError(
            ErrorCode.INVALID_REQUEST,
            f"there is no election type {request.election_type}: use 0 (preferred) or 1 (unclean)",
        )
        return refuse(request, error)
    response = ElectLeadersResponse()
    asks_for_all = request.topic_partitions is None
    for name, indexes in _wanted(image, request):
        results = ReplicaElectionResult(topic=name)
        response.replica_election_results.append(results)
        for index in indexes:
            try:
                yield [_elect(image, config, name, index, request.election_type)]
            except ApiError as error:
                if asks_for_all and error.code in (ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                    yield []  # Other requests may run after so many partitions, too.
                    continue
                results.partition_result.append(_refused(index, error))
            else:
                results.partition_result.append(PartitionResult(partition_id=index, error_message=None))
    return response


def refuse(request: ElectLeadersRequest, error: ApiError) -> ElectLeadersResponse:
    """The error is also that of each partition: version 0 has no other place for it."""
    return ElectLeadersResponse(
        error_code=error.code,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic, partition_result=[_refused(index, error) for index in topic.partitions]
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _wanted(image: ClusterImage, request: ElectLeadersRequest) -> Iterator[tuple[str, list[int]]]:
    """Topics may come and go between two of them."""
    if request.topic_partitions is not None:
        for each in request.topic_partitions:
            yield each.topic, each.partitions
        return
    for name in list(image.topics_by_name):
        topic = image.topic(name)
        if topic is not None:
            yield name, list(topic.partitions)


def _elect(
    image: ClusterImage, config: BrokerConfig, name: str, index: int, election_type: int
) -> PartitionChangeRecord:
    topic, partition = _find(image, name, index)
    if election_type == PREFERRED:
        if partition.leader == partition.preferred_leader:
            raise ApiError(ErrorCode.ELECTION_NOT_NEEDED, f"broker {partition.leader}, the first replica, leads")
        change = elections.elect_preferred(image, config, topic, index)
        if change is None:
            raise ApiError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, _why_not(image, partition))
        return change
    if partition.has_leader:
        raise ApiError(ErrorCode.ELECTION_NOT_NEEDED, f"broker {partition.leader} leads")
    change = elections.elect_any(image, config, topic, index)
    if change is None:
        raise ApiError(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, f"no replica is up, of brokers {list(partition.replicas)}"
        )
    return change


def _find(image: ClusterImage, name: str, index: int) -> tuple[TopicImage, PartitionImage]:
    topic = image.topic(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{name}' does not exist")
    partition = topic.partitions.get(index)
    if partition is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {index} of {name}")
    return topic, partition


def _why_not(image: ClusterImage, partition: PartitionImage) -> str:
    first = partition.preferred_leader
    if not elections.can_lead_now(image, partition, first):
        return f"broker {first}, the first replica, is not up"
    return f"broker {first}, the first replica, is not in sync"


def _refused(index: int, error: ApiError) -> PartitionResult:
    return PartitionResult(partition_id=index, error_code=error.code, error_message=error.message)

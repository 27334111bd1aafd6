"""Elections of leaders: the preferred ones, or any if records may be lost (KIP-460)."""

from collections.abc import Iterable

from quire.client.admin.results import ask_controller, error
from quire.client.cluster import Cluster
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ApiError
from quire.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from quire.steps import Steps

PREFERRED = 0
UNCLEAN = 1


def elect_leaders(
    cluster: Cluster, partitions: Iterable[TopicPartition] | None, *, unclean: bool = False
) -> Steps[dict[TopicPartition, ApiError | None]]:
    """The result of each partition. With None for all of the cluster, those that need no election have no result."""
    wanted: dict[str, list[int]] = {}
    for topic, partition in partitions or ():
        wanted.setdefault(topic, []).append(partition)
    request = ElectLeadersRequest(
        election_type=UNCLEAN if unclean else PREFERRED,
        topic_partitions=None
        if partitions is None
        else [TopicPartitions(topic=topic, partitions=indexes) for topic, indexes in wanted.items()],
        timeout_ms=int(cluster.request_timeout_ms),
    )
    response = yield from ask_controller(cluster, request, ElectLeadersResponse, lambda answer: [answer.error_code])
    failed = error(response.error_code, None, "no leader was elected")
    if failed is not None:
        raise failed
    return {
        TopicPartition(topic.topic, each.partition_id): error(
            each.error_code, each.error_message, f"{topic.topic}-{each.partition_id} got no new leader"
        )
        for topic in response.replica_election_results
        for each in topic.partition_result
    }

"""The topic of the marks' offsets. It has no records, so that no tool shows lag for the groups which hold the marks.

The first task of the first sink creates it, with one partition. All sinks of a cluster share it, unless the option
markerTopic names another one.
"""

from pyspark_quire.errors import QuireError
from pyspark_quire.options import MARKER_TOPIC
from quire.client.admin.topics import NewTopic, create_topics
from quire.client.backoff import Backoff
from quire.client.cluster import Cluster
from quire.client.offsets import LATEST, TopicPartition, list_offsets
from quire.protocol.errors import ApiError, ErrorCode
from quire.steps import Steps, sleep


def create_if_missing(cluster: Cluster, topic: str) -> Steps[None]:
    """Returns when partition 0 of the topic has a leader."""
    backoff = Backoff(cluster.random)
    deadline_ms = cluster.clock.monotonic_ms() + cluster.request_timeout_ms
    while True:
        yield from cluster.refresh([topic])
        known = cluster.metadata.topics.get(topic)
        if known is not None and known.led:
            return
        if known is None:
            created = (yield from create_topics(cluster, [NewTopic(topic, partitions=1)]))[topic]
            if isinstance(created, ApiError) and created.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise QuireError(
                    f"a sink that writes exactly once needs the topic {topic}, and could not create it: {created}; "
                    f"create it with one partition, or name another topic with option {MARKER_TOPIC.name}"
                ) from created
        elif known.error and not known.error.retriable:
            raise ApiError(known.error, f"topic {topic} cannot be used for the marks of a sink")
        if cluster.clock.monotonic_ms() > deadline_ms:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {topic} cannot be used for the marks of a sink")
        yield from sleep(cluster.clock, backoff.next_ms())


def check_empty(cluster: Cluster, topic_partition: TopicPartition) -> Steps[None]:
    """Raises QuireError if the partition has had records: tools would then show lag for the marks."""
    ends = yield from list_offsets(cluster, {topic_partition: LATEST})
    end = ends[topic_partition].offset
    if end > 0:
        raise QuireError(
            f"{topic_partition} ends at offset {end}, and marks on a topic with records look like consumer groups with "
            f"lag: leave option {MARKER_TOPIC.name} out, or name a topic that stays empty"
        )

"""The topics of an inventory, created with the settings that its guarantees depend on.

The event topic is compacted, so that the last event of every item is kept, but only after the archive had time to read
the events (`min.compaction.lag.ms`). Refusals are not compacted. The brokers' `default.replication.factor` and
`min.insync.replicas` apply. An existing topic is used as it is, unless it would lose events.
"""

from dataclasses import dataclass

from quire.client.admin.configs import Resource, ResourceType, describe_configs
from quire.client.admin.topics import NewTopic, create_topics
from quire.client.backoff import Backoff
from quire.client.cluster import Cluster
from quire.client.errors import ClientError
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from quire.steps import Steps, sleep

ARCHIVE_LAG_MS = 24 * 60 * 60 * 1000
"""By default, how far the archive may be behind."""
PARTITIONS = 3


@dataclass(slots=True, frozen=True)
class Topics:
    commands: str = "inventory-commands"
    events: str = "inventory-events"
    refusals: str = "inventory-refusals"


def new_topics(topics: Topics, archive_lag_ms: int = ARCHIVE_LAG_MS) -> list[NewTopic]:
    """The topics to create. Commands have one partition, and so one order."""
    compacted = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(2 * archive_lag_ms)}
    kept = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
    return [
        NewTopic(topics.commands, 1),
        NewTopic(topics.events, PARTITIONS, configs=compacted),
        NewTopic(topics.refusals, PARTITIONS, configs=kept),
    ]


def ensure_topics(cluster: Cluster, topics: Topics, archive_lag_ms: int = ARCHIVE_LAG_MS) -> Steps[None]:
    """Creates the missing topics, and raises if an existing one would lose events."""
    yield from cluster.refresh([])
    wanted = new_topics(topics, archive_lag_ms)
    results = yield from create_topics(cluster, wanted)
    for result in results.values():
        if isinstance(result, ApiError) and result.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise result
    for node in list(cluster.metadata.brokers):
        yield from _wait_until_known(cluster, node, [topic.name for topic in wanted])
    entries = yield from describe_configs(cluster, Resource(ResourceType.TOPIC, topics.events))
    _check(topics.events, {entry.name: entry.value or "" for entry in entries}, archive_lag_ms)


def _wait_until_known(cluster: Cluster, node: int, names: list[str]) -> Steps[None]:
    """Waits until all brokers know the new topics, which takes a moment; skips brokers that are down."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
    )
    backoff = Backoff(cluster.random)
    deadline_ms = cluster.clock.monotonic_ms() + cluster.request_timeout_ms
    while cluster.clock.monotonic_ms() < deadline_ms:
        try:
            answer = yield from cluster.ask(node, request, MetadataResponse)
        except ClientError:
            return
        if not any(topic.error_code for topic in answer.topics):
            return
        yield from sleep(cluster.clock, backoff.next_ms())


def _check(name: str, settings: dict[str, str], archive_lag_ms: int) -> None:
    if settings.get("cleanup.policy") != "compact":
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"topic {name} has cleanup.policy={settings.get('cleanup.policy')} and would lose items: "
            f"set it to compact with `quire topics alter {name} --set cleanup.policy=compact`",
        )
    if int(settings.get("min.compaction.lag.ms", "0")) <= archive_lag_ms:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"topic {name} may be compacted before the archive, which is allowed to be {archive_lag_ms} ms behind, has "
            f"read it: `quire topics alter {name} --set min.compaction.lag.ms={2 * archive_lag_ms}`",
        )


def partitions_of(cluster: Cluster, topic: str) -> Steps[list[TopicPartition]]:
    """The partitions of a topic."""
    yield from cluster.refresh([topic])
    known = cluster.metadata.topics.get(topic)
    if known is None or not known.partitions:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic} does not exist")
    return [TopicPartition(topic, index) for index in sorted(known.partitions)]


def grown(topic: str, before: int, now: int) -> ClientError:
    """The error for a reader of a topic that got new partitions, which it does not read."""
    return ClientError(f"topic {topic} had {before} partitions and has {now} now; start this again to read all of them")

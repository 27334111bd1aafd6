"""The coordinators of a node: which groups and transactions it coordinates, and their internal topics.

A shard is loaded when the node becomes the leader of its partition and unloaded when it stops leading. No shard is
loaded before the node is registered with the cluster, which raises its leader epochs. A coordinator that wrote before,
for example markers, could reuse offsets that were lost in a power failure, in the same epoch. The topics are created
when a client first asks for a coordinator, with Kafka's settings.
"""

import logging
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from quire.coordinators.runtime.machine import MachineEnvironment, StateMachine, Timers
from quire.coordinators.runtime.runtime import CoordinatorRuntime
from quire.coordinators.runtime.shard import Shard
from quire.coordinators.runtime.state_log import StateLog
from quire.metadata.delta import ImageDelta
from quire.metadata.image import ClusterImage, TopicImage
from quire.node.own_state_log import OwnStateLog
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import GROUP_OFFSETS, TRANSACTION_STATE
from quire.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from quire.throttled_log import ThrottledLog

if TYPE_CHECKING:
    from quire.coordinators.group.machine import GroupMachine
    from quire.coordinators.transaction.machine import TransactionMachine
    from quire.node.node import Node

M = TypeVar("M", bound=StateMachine)

log = logging.getLogger("quire.coordinators")

_MACHINES = {
    GROUP_OFFSETS: "quire.coordinators.group.machine",
    TRANSACTION_STATE: "quire.coordinators.transaction.machine",
}
"""Imported when first needed. So a node without groups starts faster and uses less memory."""


class Coordinators:
    __slots__ = ("_log", "_node", "_started", "groups", "transactions")

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._log = ThrottledLog(log, node.clock)
        self._started = False
        self.groups: CoordinatorRuntime[GroupMachine] = CoordinatorRuntime(GROUP_OFFSETS, self._group_shard)
        self.transactions: CoordinatorRuntime[TransactionMachine] = CoordinatorRuntime(
            TRANSACTION_STATE, self._transaction_shard
        )

    def start(self, image: ClusterImage) -> None:
        """Loads the shards of all partitions that the node leads. The node is registered with the cluster."""
        self._started = True
        runtimes: tuple[CoordinatorRuntime[Any], ...] = (self.groups, self.transactions)
        for runtime in runtimes:
            topic = image.topic(runtime.topic)
            if topic is not None:
                _load_led(runtime, topic, topic.partitions, self._node.node_id)

    def stop(self) -> None:
        self._started = False
        self.transactions.send_now()
        self.groups.stop()
        self.transactions.stop()

    # --- Metadata

    def apply(self, image: ClusterImage, delta: ImageDelta) -> None:
        """Called after the node has opened and closed its partitions."""
        if not self._started:
            return
        _follow(self.groups, image, delta, self._node.node_id)
        _follow(self.transactions, image, delta, self._node.node_id)
        if delta.created_topics or delta.removed_topics or delta.partitions:
            topics = _created_or_removed(image, delta)
            self.groups.metadata_changed(topics)
            self.transactions.metadata_changed(topics)

    # --- Internal topics

    def create_topic(self, topic: str) -> Pending[ErrorCode]:
        """Creates the internal topic of a kind of coordinator, unless it exists."""
        node = self._node
        created: Pending[ErrorCode] = Pending()

        def create(_: object = None) -> None:
            request = CreateTopicsRequest(topics=[self._settings_of(topic)])
            node.to_controller.create_topics(request).when_done(lambda answer: created.complete(self._failure(answer)))

        # This is the first coordinator of its kind. Its code is imported in a job, which takes tens of milliseconds.
        node.jobs.submit(lambda: import_module(_MACHINES[topic]), create, create)
        return created

    def _failure(self, response: CreateTopicsResponse) -> ErrorCode:
        (topic,) = response.topics
        code = ErrorCode(topic.error_code)
        if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            return ErrorCode.NONE
        # Clients only see COORDINATOR_NOT_AVAILABLE, and the reason is most likely a setting of this broker.
        self._log.error("the internal topic %s cannot be created: %s (%s)", topic.name, topic.error_message, code.name)
        return code

    def _settings_of(self, topic: str) -> CreatableTopic:
        config = self._node.config
        if topic == GROUP_OFFSETS:
            settings = {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.get_int("offsets.topic.segment.bytes")),
            }
            partitions = config.get_int("offsets.topic.num.partitions")
            replicas = config.get_int("offsets.topic.replication.factor")
        else:
            settings = {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(config.get_int("transaction.state.log.min.isr")),
                "segment.bytes": str(config.get_int("transaction.state.log.segment.bytes")),
                "unclean.leader.election.enable": "false",
            }
            partitions = config.get_int("transaction.state.log.num.partitions")
            replicas = config.get_int("transaction.state.log.replication.factor")
        return CreatableTopic(
            name=topic,
            num_partitions=partitions,
            replication_factor=replicas,
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in settings.items()],
        )

    # --- Shards

    def _group_shard(self, partition: int, leader_epoch: int) -> "Shard[GroupMachine]":
        from quire.coordinators.group.machine import GroupMachine

        config = self._node.config
        max_batch_bytes = self._max_batch_bytes(GROUP_OFFSETS, partition)
        return Shard(
            f"{GROUP_OFFSETS}-{partition}",
            leader_epoch,
            self._state_log(GROUP_OFFSETS, partition, leader_epoch, "offsets.load.buffer.size"),
            lambda timers: GroupMachine(self._environment(timers, max_batch_bytes)),
            self._node.clock,
            max_batch_bytes=max_batch_bytes,
            write_timeout_ms=config.get_int("offsets.commit.timeout.ms"),
        )

    def _transaction_shard(self, partition: int, leader_epoch: int) -> "Shard[TransactionMachine]":
        from quire.node.transaction_shard import OwnTransactionShard

        max_batch_bytes = self._max_batch_bytes(TRANSACTION_STATE, partition)
        return OwnTransactionShard(
            self._node,
            f"{TRANSACTION_STATE}-{partition}",
            leader_epoch,
            self._state_log(TRANSACTION_STATE, partition, leader_epoch, "transaction.state.log.load.buffer.size"),
            lambda timers: self._environment(timers, max_batch_bytes),
            max_batch_bytes,
        ).shard

    def _state_log(self, topic: str, partition: int, leader_epoch: int, buffer_setting: str) -> StateLog:
        node = self._node
        return node.state_log(
            OwnStateLog(
                node.partitions,
                topic,
                partition,
                leader_epoch,
                node.clock,
                node.jobs,
                read_bytes=node.config.get_int(buffer_setting),
                timeout_ms=node.config.get_int("offsets.commit.timeout.ms"),
            )
        )

    def _max_batch_bytes(self, topic: str, partition: int) -> Callable[[], int]:
        """The setting of the topic, or of the broker. Both can change while the node runs."""
        node = self._node

        def max_batch_bytes() -> int:
            try:
                return node.partitions.leader(topic, None, partition).partition.settings.max_message_bytes
            except ApiError:
                return node.config.get_int("message.max.bytes")  # Appends fail anyway.

        return max_batch_bytes

    def _environment(self, timers: Timers, max_batch_bytes: Callable[[], int]) -> MachineEnvironment:
        node = self._node
        replica = node.metadata
        return MachineEnvironment(node.config, node.random, timers, lambda: replica.image, max_batch_bytes)


def _created_or_removed(image: ClusterImage, delta: ImageDelta) -> list[str]:
    created = [topic.name for topic_id in delta.created_topics if (topic := image.topic_by_id(topic_id)) is not None]
    removed = [topic.name for topic in delta.removed_topics.values()]
    return list(dict.fromkeys(created + removed))


def _follow(runtime: CoordinatorRuntime[M], image: ClusterImage, delta: ImageDelta, node_id: int) -> None:
    for removed in delta.removed_topics.values():
        if removed.name == runtime.topic:
            runtime.topic_changed(0)
            runtime.stop()
    topic = image.topic(runtime.topic)
    if topic is not None and topic.topic_id in delta.partitions:
        _load_led(runtime, topic, delta.partitions[topic.topic_id], node_id)


def _load_led(runtime: CoordinatorRuntime[M], topic: TopicImage, indexes: Iterable[int], node_id: int) -> None:
    runtime.topic_changed(len(topic.partitions))
    for index in indexes:
        partition = topic.partitions[index]
        if partition.leader == node_id:
            runtime.elected(index, partition.leader_epoch)
        else:
            runtime.resigned(index)

"""Creates, grows, configures and deletes topics, one request after the other, and checks that metadata agrees.

A request whose response is lost is retried until a response shows the state. Late copies of lost requests may still be
executed afterwards; the ledger allows for that.
"""

from collections.abc import Awaitable

from quire.protocol.errors import ErrorCode
from quire.protocol.internal_topics import GROUP_OFFSETS, TRANSACTION_STATE
from quire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from quire.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from quire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from quire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from quire.protocol.schema import Message
from simulator.clients.client import Scene, SimClient
from simulator.clients.coordinator import GROUP, TRANSACTION, find_coordinator
from simulator.clients.describe import describe_settings, describe_topics
from simulator.clients.wire import Lost
from simulator.ledger import FLUSH_MESSAGES, Setting, TopicBook
from simulator.violation import Violation

TOPIC_RESOURCE = 2
SET = 0
MOST_PARTITIONS = 6
NEVER = str(2**63 - 1)
SETTINGS = {
    "max.message.bytes": ("1048588", "1048588", "1048589", "2000000"),
    "index.interval.bytes": ("4096", "0", "300", "4096"),
    "segment.ms": ("604800000", "300", "3000", "604800000"),
    "compression.type": ("producer", "producer", "uncompressed", "lz4", "zstd"),
    "file.delete.delay.ms": ("60000", "0", "1000"),
    "retention.ms": ("604800000", "800", "3000", "604800000", "-1"),
    "retention.bytes": ("-1", "15000", "40000", "-1"),
    FLUSH_MESSAGES: (NEVER, "1", "1", "4", NEVER),
    "flush.ms": (NEVER, "50", "1000", NEVER),
}
"""Settings that may change while producers write: Kafka's default, and values that do not affect them."""
RETENTION = ("retention.ms", "retention.bytes")
"""Changed only in topics that stay, because no client looks up the start of the others; not in transactional ones."""


class Administrator(SimClient):
    def __init__(self, scene: Scene, name: str) -> None:
        super().__init__(scene, name)
        self._created = 0

    async def run(self) -> None:
        while not self.scene.finishing:
            await self._do_something()
            await self.scene.sleep(self.random.between(50.0, 900.0))
        self.close()

    async def _do_something(self) -> None:
        topics = self.scene.ledger.live_topics()
        leaving = [topic for topic in topics if not topic.stays]
        topic = self.random.choice(topics)
        dice = self.random.between(0.0, 1.0)
        if dice < 0.2 and len(leaving) < 4:
            replicas = 1 + self.random.below(self.scene.most_replicas) if self.scene.most_replicas > 1 else 1
            await self.create(self._name(), 1 + self.random.below(2), {}, stays=False, replication_factor=replicas)
        elif dice < 0.35 and leaving:
            await self._delete(self.random.choice(leaving))
        elif dice < 0.5 and len(topic.partitions) < MOST_PARTITIONS:
            await self._grow(topic, len(topic.partitions) + 1)
        elif dice < 0.75:
            await self._alter(topic)
        elif dice < 0.9:
            await self._try(describe_topics(self))
        else:
            await self._try(describe_settings(self, topic))

    def _name(self) -> str:
        """A new name, or that of a deleted topic, unless a late request might create that topic again."""
        ledger = self.scene.ledger
        free = [
            topic.name
            for topic in ledger.topics.values()
            if topic.deleted and topic.name not in ledger.doubtful_names and ledger.topic_named(topic.name) is None
        ]
        if free and self.random.chance(0.6):
            return self.random.choice(free)
        self._created += 1
        return f"{self.name}-{self._created}"

    # --- Changes

    async def create(
        self,
        name: str,
        partitions: int,
        settings: dict[str, str],
        *,
        stays: bool,
        transactional: bool = False,
        replication_factor: int = 1,
    ) -> TopicBook:
        ledger = self.scene.ledger
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replication_factor)
        topic.configs = [CreatableTopicConfig(name=key, value=value) for key, value in settings.items()]
        # Recorded before it is sent: others may see it in metadata before this client gets its response.
        sure = name not in ledger.doubtful_names
        ledger.doubtful_names.append(name)
        error, lost = await self._repeat_until_answered(
            CreateTopicsRequest(topics=[topic]), "topics", name, ErrorCode.TOPIC_ALREADY_EXISTS
        )
        if error is ErrorCode.TOPIC_ALREADY_EXISTS and not lost:
            raise Violation("errors have a cause", f"{name} exists already, but was never created")
        topic_id = await self._id_of(name)
        may_move = any(topic_name == name for topic_name, _ in self.scene.moving)
        book = ledger.topics[topic_id] = TopicBook(
            name,
            topic_id,
            partitions,
            stays=stays,
            transactional=transactional,
            replication_factor=max(replication_factor, 2 if may_move else 1),
        )
        book.settings = {key: Setting(value) for key, value in settings.items()}
        if sure and not lost:
            ledger.doubtful_names.remove(name)
        ledger.counts.topics_created += 1
        self.scene.tell(f"{self.name} created {name} with {partitions} partitions, {replication_factor} times each")
        return book

    async def _id_of(self, name: str) -> bytes:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        while True:
            try:
                answer = await self.ask(request, at_least=10)
            except Lost:
                await self.back_off()
                continue
            found = answer.topics[0]
            if self.expect(found.error_code, f"Metadata of {name}, which was created") is ErrorCode.NONE:
                return bytes(found.topic_id)
            await self.back_off()

    async def _delete(self, topic: TopicBook) -> None:
        topic.deletion_asked = True
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic.topic_id)], timeout_ms=3000)
        await self._repeat_until_answered(request, "responses", topic.name, ErrorCode.UNKNOWN_TOPIC_ID, at_least=6)
        topic.deleted = True
        self.scene.ledger.counts.topics_deleted += 1
        self.scene.tell(f"{self.name} deleted {topic}")

    async def _grow(self, topic: TopicBook, partitions: int) -> None:
        topic.partitions_asked = partitions
        wanted = CreatePartitionsTopic(name=topic.name, count=partitions, assignments=None)
        request = CreatePartitionsRequest(topics=[wanted], timeout_ms=3000)
        error, lost = await self._repeat_until_answered(request, "results", topic.name, ErrorCode.INVALID_PARTITIONS)
        if error is not ErrorCode.NONE and not lost:
            raise Violation("errors have a cause", f"{topic} cannot have {partitions} partitions: {error.name}")
        topic.grow(partitions)
        self.scene.tell(f"{self.name} grew {topic} to {partitions} partitions")

    async def _alter(self, topic: TopicBook) -> None:
        kept = (*RETENTION, FLUSH_MESSAGES) if topic.transactional else () if topic.stays else RETENTION
        keys = [key for key in SETTINGS if key not in kept]
        key = self.random.choice(keys)
        default, *values = SETTINGS[key]
        value = self.random.choice(values)
        topic.flush_changes += key == FLUSH_MESSAGES
        setting = topic.settings.setdefault(key, Setting(default))
        setting.doubtful.append(value)
        setting.tried.append(value)
        resource = AlterConfigsResource(
            resource_type=TOPIC_RESOURCE,
            resource_name=topic.name,
            configs=[AlterableConfig(name=key, config_operation=SET, value=value)],
        )
        _, lost = await self._repeat_until_answered(
            IncrementalAlterConfigsRequest(resources=[resource]), "responses", topic.name
        )
        setting.acknowledged = value
        if not lost:
            setting.doubtful.remove(value)

    async def set_up_coordinators(self, settings: dict[str, str]) -> None:
        """Makes the node create the internal topics of coordinators, with these settings."""
        for key_type, topic in ((GROUP, GROUP_OFFSETS), (TRANSACTION, TRANSACTION_STATE)):
            self.scene.ledger.doubtful_names.append(topic)
            await find_coordinator(self, key_type, "any")
            configs = [AlterableConfig(name=key, config_operation=SET, value=value) for key, value in settings.items()]
            resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=configs)
            await self._repeat_until_answered(IncrementalAlterConfigsRequest(resources=[resource]), "responses", topic)

    # --- Requests

    async def _repeat_until_answered(
        self, request: Message, results: str, what: str, already: ErrorCode | None = None, *, at_least: int = 0
    ) -> tuple[ErrorCode, bool]:
        """Retries until there is an answer; returns its error (NONE or `already`), and whether an answer was lost."""
        lost = not self.scene.alone  # a node that passes a request on may do so twice
        while True:
            try:
                answer = await self.ask(request, at_least=at_least)
            except Lost:
                lost = True
                await self.back_off()
                continue
            # A copy of the frame may still be in transit.
            lost = lost or self.sent_twice
            allowed = (already,) if already is not None else ()
            result = getattr(answer, results)[0]
            error = self.expect(result.error_code, f"{type(request).__name__} of {what}", *allowed, *self.excuses)
            if error is ErrorCode.NONE or error in allowed:
                return error, lost
            await self.back_off()

    async def _try(self, question: Awaitable[None]) -> None:
        try:
            await question
        except Lost:
            await self.back_off()

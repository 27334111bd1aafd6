"""A small cluster as the active controller has it, for transcripts: each command runs a manager, and tells what it did.

`->` is what the client gets. The other lines are the partitions and brokers that the records change, as they are then.
"""

from collections.abc import Callable
from typing import TypeVar

from quire.config.broker_config import BrokerConfig
from quire.controller import (
    alter_partition_reassignments,
    brokers,
    create_partitions,
    elect_leaders,
    elections,
    list_partition_reassignments,
)
from quire.controller import configs as alter_configs
from quire.controller.controller_result import Portions
from quire.metadata.delta import ImageDelta
from quire.metadata.image import TOPIC, ClusterImage, PartitionImage, TopicImage
from quire.metadata.replay import replay
from quire.protocol.errors import ErrorCode
from quire.protocol.messages import alter_partition_reassignments as reassignments
from quire.protocol.messages import incremental_alter_configs as configs
from quire.protocol.messages import list_partition_reassignments as listing
from quire.protocol.messages import metadata_records as records
from quire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from quire.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from quire.protocol.messages.unregister_broker import UnregisterBrokerRequest
from quire.protocol.schema import Message
from simulator.random import SimRandom
from tests.controller import images

R = TypeVar("R")
Name = tuple[str, int]

_ELECTION_TYPES = {"preferred": elect_leaders.PREFERRED, "unclean": elect_leaders.UNCLEAN}


class Stage:
    """Brokers 1, 2, ...; each has one directory."""

    def __init__(self, broker_count: int, options: list[str]) -> None:
        assert set(options) <= {"elr"}, f"there are no such options: {options}"
        self.story: list[str] = []
        self._config = BrokerConfig.standalone({})
        level = {"eligible.leader.replicas.version": int("elr" in options)}
        self._image: ClusterImage = images.cluster(brokers=broker_count, features=level)

    def command(self, name: str, words: list[str]) -> None:
        match name, words:
            case "topic", [topic, *assignments]:
                self._create(topic, [numbers(each) for each in assignments])
            case "set", [topic, setting]:
                key, _, value = setting.partition("=")
                self._write(images.setting(TOPIC, topic, key, value))
            case "delete", [topic]:
                self._write(records.RemoveTopicRecord(topic_id=self._topic(topic).topic_id))
            case "fence", [broker]:
                self._run(lambda image: brokers.fence(image, self._config, int(broker)))
            case "unfence", [broker]:
                self._change(int(broker), brokers.UNFENCE, 0)
            case "shut-down", [broker]:
                self._change(int(broker), 0, brokers.SHUT_DOWN)
            case "unregister", [broker]:
                request = UnregisterBrokerRequest(broker_id=int(broker))
                self._run(lambda image: brokers.unregister_broker(image, self._config, request))
            case "in-sync", [partition, members]:
                self._in_sync(named(partition), numbers(members))
            case "elect", [type_, *partitions]:
                self._elect(_ELECTION_TYPES.get(type_, 7), partitions)
            case "lose-power", [broker]:
                self._run(lambda image: elections.settle(image, self._config, int(broker), unclean_shutdown=True))
            case "alter", [topic, setting]:
                self._alter(topic, setting)
            case "grow", [topic, count]:
                self._grow(topic, int(count))
            case "reassign", [*words]:
                self._reassign(words)
            case "cancel", partitions:
                self._reassign([word for each in partitions for word in (each, "cancel")])
            case "list", topics:
                self._list(topics)
            case "status", []:
                for each in self._image.topics_by_name.values():
                    for index in each.partitions:
                        self._tell_partition(each, index)
            case _:
                raise AssertionError(f"no such command: {name} {' '.join(words)}")

    # --- What happens to the cluster

    def _create(self, name: str, assignments: list[tuple[int, ...]]) -> None:
        topic_id = name.encode().ljust(16, b"-")
        self._write(images.topic(name, topic_id))
        for index, replicas in enumerate(assignments):
            self._write(images.partition(index, replicas, topic_id=topic_id))

    def _change(self, broker_id: int, fenced: int, shuts_down: int) -> None:
        epoch = self._image.brokers[broker_id].epoch
        record = records.BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch)
        record.fenced, record.in_controlled_shutdown = fenced, shuts_down
        self._write(record)
        self._run(lambda image: elections.settle(image, self._config, broker_id))

    def _in_sync(self, name: Name, isr: tuple[int, ...]) -> None:
        """The leader asks for this ISR."""
        topic, index = self._topic(name[0]), name[1]
        change = elections.isr_altered(self._image, self._config, topic, index, isr, 0)
        if change is not None:
            self._write(change)

    # --- Requests

    def _elect(self, election_type: int, partitions: list[str]) -> None:
        wanted: dict[str, list[int]] = {}
        for topic, index in map(named, [] if partitions == ["all"] else partitions):
            wanted.setdefault(topic, []).append(index)
        request = ElectLeadersRequest(
            election_type=election_type,
            topic_partitions=None
            if partitions == ["all"]
            else [TopicPartitions(topic=topic, partitions=indexes) for topic, indexes in wanted.items()],
        )
        response: ElectLeadersResponse = self._run(
            lambda image: elect_leaders.elect_leaders(image, self._config, request)
        )
        if response.error_code:
            self.story.append(f"-> {ErrorCode(response.error_code).name}")
        for topic_results in response.replica_election_results:
            for each in topic_results.partition_result:
                self._answer(f"{topic_results.topic}-{each.partition_id}", each.error_code, each.error_message)

    def _alter(self, topic: str, setting: str) -> None:
        key, _, value = setting.partition("=")
        resource = configs.AlterConfigsResource(
            resource_type=TOPIC,
            resource_name=topic,
            configs=[configs.AlterableConfig(name=key, value=value)],
        )
        request = configs.IncrementalAlterConfigsRequest(resources=[resource])
        self._run(lambda image: alter_configs.incremental_alter_configs(image, self._config, request))

    def _grow(self, topic: str, count: int) -> None:
        wanted = CreatePartitionsTopic(name=topic, count=count, assignments=None)
        request = CreatePartitionsRequest(topics=[wanted])
        response = self._run(lambda image: create_partitions.create_partitions(image, SimRandom(1), request))
        for each in response.results:
            self._answer(each.name, each.error_code, each.error_message)

    def _reassign(self, words: list[str]) -> None:
        """Pairs of a partition and its replicas; `same-factor` at the end forbids another replication factor."""
        by_topic: dict[str, reassignments.ReassignableTopic] = {}
        for name, target in zip(words[::2], words[1::2], strict=False):
            topic, index = named(name)
            entry = by_topic.setdefault(topic, reassignments.ReassignableTopic(name=topic))
            replicas = None if target == "cancel" else [] if target == "none" else list(numbers(target))
            entry.partitions.append(reassignments.ReassignablePartition(partition_index=index, replicas=replicas))
        request = reassignments.AlterPartitionReassignmentsRequest(
            allow_replication_factor_change=words[-1] != "same-factor", topics=list(by_topic.values())
        )
        response = self._run(
            lambda image: alter_partition_reassignments.alter_partition_reassignments(image, self._config, request)
        )
        for topic_results in response.responses:
            for each in topic_results.partitions:
                self._answer(f"{topic_results.name}-{each.partition_index}", each.error_code, each.error_message)

    def _list(self, partitions: list[str]) -> None:
        topics = [
            listing.ListPartitionReassignmentsTopics(name=topic, partition_indexes=[index])
            for topic, index in map(named, partitions)
        ]
        request = listing.ListPartitionReassignmentsRequest(topics=topics or None)
        response = self._run(lambda image: list_partition_reassignments.list_partition_reassignments(image, request))
        for topic in response.topics:
            for each in topic.partitions:
                ways = f"adding {listed(tuple(each.adding_replicas))}, removing {listed(tuple(each.removing_replicas))}"
                replicas = listed(tuple(each.replicas))
                self.story.append(f"-> {topic.name}-{each.partition_index}: replicas {replicas}, {ways}")
        if not response.topics:
            self.story.append("-> nothing")

    # --- Records

    def _run(self, manage: Callable[[ClusterImage], Portions[R]]) -> R:
        portions = manage(self._image)
        while True:
            try:
                portion = next(portions)
            except StopIteration as end:
                result: R = end.value
                return result
            for record in portion:
                self._write(record)

    def _write(self, record: Message) -> None:
        replay(self._image, record, ImageDelta())
        if isinstance(record, records.PartitionChangeRecord | records.PartitionRecord):
            self._tell_partition(self._image.topics_by_id[record.topic_id], record.partition_id)
        elif isinstance(record, records.BrokerRegistrationChangeRecord):
            broker = self._image.brokers[record.broker_id]
            state = "is fenced" if broker.fenced else "is active" if broker.is_active else "shuts down"
            self.story.append(f"broker {broker.broker_id} {state}")

    def _topic(self, name: str) -> TopicImage:
        topic = self._image.topic(name)
        assert topic is not None, f"there is no topic {name}"
        return topic

    # --- The story

    def _tell_partition(self, topic: TopicImage, index: int) -> None:
        self.story.append(f"{topic.name}-{index}  {described(topic.partitions[index])}")

    def _answer(self, what: str, code: int, message: str | None) -> None:
        reason = "" if message is None else f": {message}"
        self.story.append(f"-> {what} {ErrorCode(code).name}{reason}")


def described(partition: PartitionImage) -> str:
    leader = partition.leader if partition.has_leader else "none"
    words = [
        f"replicas {listed(partition.replicas)}",
        f"leader {leader} in epoch {partition.leader_epoch}",
        f"isr {listed(partition.isr)}",
    ]
    for what, members in (
        ("elr", partition.elr),
        ("last known", partition.last_known_elr),
        ("adding", partition.adding_replicas),
        ("removing", partition.removing_replicas),
    ):
        if members:
            words.append(f"{what} {listed(members)}")
    if partition.leader_recovery_state:
        words.append("recovering")
    return ", ".join(words)


def listed(members: tuple[int, ...]) -> str:
    return " ".join(map(str, members)) or "none"


def numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def named(text: str) -> Name:
    topic, _, index = text.rpartition("-")
    return topic, int(index)

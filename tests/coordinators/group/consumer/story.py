"""The commands of the transcripts: consumers that send heartbeats and follow the responses, and a coordinator that
writes records.

A member remembers its epoch, its assignment and the partitions that it owns; with each `beat` it takes and revokes
partitions as assigned, and reports them. With `keeping` it revokes nothing.
"""

import re

from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.runtime.record import StateRecord
from quire.protocol.errors import ApiError
from quire.protocol.messages import group_records as messages
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.coordinators.group.consumer.classic_consumer import ClassicConsumer
from tests.coordinators.group.consumer.consumer_shard import ConsumerShard, assigned, beat, join

Partitions = dict[bytes, set[int]]


class Consumer:
    def __init__(self, member_id: str, instance_id: str | None) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.epoch = 0
        self.told: Partitions = {}
        self.has: Partitions = {}
        self.reported: Partitions | None = None


class Story:
    def __init__(self, settings: dict[str, str]) -> None:
        self.told: list[str] = []
        self.shard = ConsumerShard(settings)
        self.shard.on_append = self._written
        self.consumers: dict[str, Consumer] = {}
        self.classic: dict[str, ClassicConsumer] = {}

    # --- Consumers

    def join(self, name: str, *topics: str, **options: str) -> None:
        consumer = Consumer(options.get("id", name), options.get("instance"))
        self.consumers[name] = consumer
        request = join(consumer.member_id, *topics, instance_id=consumer.instance_id)
        if "regex" in options:
            request.subscribed_topic_regex = options["regex"]
            request.subscribed_topic_names = list(topics) or None
        request.server_assignor = options.get("assignor")
        request.rebalance_timeout_ms = int(options.get("rebalance", "60000"))
        consumer.reported = {}
        self._send(name, request, int(options.get("version", "1")))

    def beat(self, *words: str) -> None:
        for name in [word for word in words if word != "keeping"]:
            consumer = self.consumers[name]
            kept = consumer.has if "keeping" in words else {}
            consumer.has = _union(consumer.told, kept)
            news = consumer.has if consumer.has != consumer.reported else None
            consumer.reported = consumer.has
            self._send(name, beat(consumer.member_id, consumer.epoch, news, instance_id=consumer.instance_id))

    def subscribe(self, name: str, *topics: str, **options: str) -> None:
        consumer = self.consumers[name]
        request = beat(consumer.member_id, consumer.epoch, instance_id=consumer.instance_id)
        request.subscribed_topic_names = list(topics)
        request.subscribed_topic_regex = options.get("regex")
        self._send(name, request)

    def send(self, name: str, **options: str) -> None:
        """Sends a request exactly as written. The consumer gets no response to a late one."""
        consumer = self.consumers[name]
        request = beat(options.get("id", consumer.member_id), int(options.get("epoch", consumer.epoch)))
        request.instance_id = options.get("instance", consumer.instance_id)
        if "owns" in options:
            request.topic_partitions = beat("", 1, self._partitions(options["owns"])).topic_partitions
        if request.member_epoch == 0:
            request = join(request.member_id, *options.get("topics", "").split(","), instance_id=request.instance_id)
        self._send(name, request, is_late="late" in options)

    def leave(self, name: str, **options: str) -> None:
        consumer = self.consumers.pop(name)
        epoch = -2 if "statically" in options else -1
        self._send(name, beat(consumer.member_id, epoch, instance_id=consumer.instance_id))

    # --- Consumers of the classic protocol

    def old(self, name: str, *topics: str, **options: str) -> None:
        """Creates such a consumer, which has not sent anything yet."""
        is_cooperative = "cooperative" in options
        self.classic[name] = ClassicConsumer(self.shard, name, topics, options.get("instance"), is_cooperative)

    def rejoin(self, *names: str) -> None:
        """They all join at the same time, and then ask for their assignments, the leader first."""
        consumers = [self.classic[name] for name in names]
        joining = {consumer.name: consumer.join() for consumer in consumers}
        self.shard.wait(0)
        for consumer in sorted(consumers, key=lambda consumer: not consumer.takes_lead(joining[consumer.name])):
            self.told.append(f"{consumer.name} <- {consumer.sync(joining[consumer.name])}")

    def enter(self, name: str) -> None:
        """It joins, and does not ask for its assignment."""
        joined = self.classic[name].join().value
        self.told.append(f"{name} <- generation {joined.generation_id}")

    def ask(self, *names: str) -> None:
        """Heartbeats."""
        self.told += [f"{name} <- {self.classic[name].beat()}" for name in names]

    def quit(self, name: str) -> None:
        self.told.append(f"{name} <- {self.classic.pop(name).leave()}")
        self.shard.wait(0)

    # --- Events in the cluster

    def topic(self, name: str, partitions: str) -> None:
        self.shard.put_topic(name, int(partitions))

    def delete(self, name: str) -> None:
        self.shard.delete_topic(name)

    def wait(self, duration_ms: str) -> None:
        self.shard.wait(int(duration_ms))

    def reload(self) -> None:
        """Another node takes over, and replays the log."""
        self.shard.reload()

    def describe(self) -> None:
        group = self.shard.groups.get("readers")
        if group is None:
            self.told.append("there is no such group")
            return
        if not isinstance(group, ConsumerGroup):
            self.told.append(f"{group.state_name} and {group.type.value}")
            return
        shown = self.shard.describe()
        self.told.append(
            f"{shown.group_state}, group epoch {shown.group_epoch}, "
            f"target of epoch {shown.assignment_epoch} by {shown.assignor_name}"
        )
        for member in shown.members:
            has = self._show({each.topic_id: set(each.partitions) for each in member.assignment.topic_partitions})
            should = {each.topic_id: set(each.partitions) for each in member.target_assignment.topic_partitions}
            name = _without_uuids(member.member_id)
            self.told.append(f"{name} in epoch {member.member_epoch} has {has} of {self._show(should)}")

    # --- Text of the transcript

    def _send(
        self, name: str, request: ConsumerGroupHeartbeatRequest, version: int = 1, *, is_late: bool = False
    ) -> None:
        answer = self.shard.heartbeat(request, version=version)
        if isinstance(answer, ApiError):
            self.told.append(f"{name} <- {answer.code.name}: {answer.message}")
            return
        consumer = self.consumers.get(name)
        if consumer is not None and not is_late:
            self._take(consumer, answer)
        told = assigned(answer)
        self.told.append(
            f"{name} <- epoch {answer.member_epoch}" + ("" if told is None else f", has to have {self._show(told)}")
        )

    def _take(self, consumer: Consumer, answer: ConsumerGroupHeartbeatResponse) -> None:
        assert answer.member_id
        consumer.member_id, consumer.epoch = answer.member_id, answer.member_epoch
        told = assigned(answer)
        if told is not None:
            consumer.told = told
            # It confirms every assignment.
            consumer.reported = None

    def _written(self, record: StateRecord) -> None:
        self.told.append("  " + _without_uuids(self._show_record(record)))

    def _show_record(self, record: StateRecord) -> str:
        key, value = record.key, record.value
        match key, value:
            case messages.GroupMetadataKey(), messages.GroupMetadataValue():
                members = " ".join(member.member_id for member in value.members) or "nobody"
                return f"+ classic group: generation {value.generation} of {members}, led by {value.leader or 'nobody'}"
            case messages.GroupMetadataKey(), None:
                return "- classic group"
            case messages.ConsumerGroupMetadataKey(), messages.ConsumerGroupMetadataValue():
                return f"+ group epoch {value.epoch}"
            case messages.ConsumerGroupMetadataKey(), None:
                return "- group epoch"
            case messages.ConsumerGroupPartitionMetadataKey(), None:
                return "- topics of the group"
            case messages.ConsumerGroupMemberMetadataKey(), messages.ConsumerGroupMemberMetadataValue():
                return f"+ member {key.member_id}: {_said(value)}"
            case messages.ConsumerGroupMemberMetadataKey(), None:
                return f"- member {key.member_id}"
            case (
                messages.ConsumerGroupTargetAssignmentMetadataKey(),
                messages.ConsumerGroupTargetAssignmentMetadataValue(),
            ):
                return f"+ target epoch {value.assignment_epoch}"
            case messages.ConsumerGroupTargetAssignmentMetadataKey(), None:
                return "- target epoch"
            case (
                messages.ConsumerGroupTargetAssignmentMemberKey(),
                messages.ConsumerGroupTargetAssignmentMemberValue(),
            ):
                return f"+ target {key.member_id}: {self._show_listed(value.topic_partitions)}"
            case messages.ConsumerGroupTargetAssignmentMemberKey(), None:
                return f"- target {key.member_id}"
            case (
                messages.ConsumerGroupCurrentMemberAssignmentKey(),
                messages.ConsumerGroupCurrentMemberAssignmentValue(),
            ):
                state = ("STABLE", "UNREVOKED", "UNRELEASED")[value.state]
                revoking = self._show_listed(value.partitions_pending_revocation)
                epochs = f"epoch {value.member_epoch} after {value.previous_member_epoch}"
                has = self._show_listed(value.assigned_partitions)
                gives_up = f", gives up {revoking}" if value.partitions_pending_revocation else ""
                return f"+ current {key.member_id}: {epochs}, {state}, {has}{gives_up}"
            case messages.ConsumerGroupCurrentMemberAssignmentKey(), None:
                return f"- current {key.member_id}"
            case messages.ConsumerGroupRegularExpressionKey(), messages.ConsumerGroupRegularExpressionValue():
                return f"+ regex {key.regular_expression}: {' '.join(value.topics) or 'nothing'}"
            case messages.ConsumerGroupRegularExpressionKey(), None:
                return f"- regex {key.regular_expression}"
        return repr(record)

    def _show_listed(self, listed: list[messages.TopicPartition] | list[messages.TopicPartitions]) -> str:
        return self._show({each.topic_id: set(each.partitions) for each in listed})

    def _show(self, partitions: Partitions) -> str:
        shown = []
        for topic_id, numbers in partitions.items():
            name = topic_id[:14].rstrip(b"\0").decode()
            shown.append(f"{name} {','.join(map(str, sorted(numbers)))}")
        return "; ".join(sorted(shown)) or "nothing"

    def _partitions(self, text: str) -> Partitions:
        """`orders:0,1;payments:2` or nothing."""
        owned: Partitions = {}
        for part in filter(None, text.split(";")):
            name, _, numbers = part.partition(":")
            owned[self.shard.image.topics_by_name[name].topic_id] = set(map(int, numbers.split(",")))
        return owned


def _without_uuids(text: str) -> str:
    """Member ids that the coordinator generates begin with the client id."""
    return re.sub(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "", text)


def _union(a: Partitions, b: Partitions) -> Partitions:
    return {topic: a.get(topic, set()) | b.get(topic, set()) for topic in {**a, **b}}


def _said(value: messages.ConsumerGroupMemberMetadataValue) -> str:
    said = " ".join(value.subscribed_topic_names) or "no topics"
    if value.subscribed_topic_regex:
        said += f" and /{value.subscribed_topic_regex}/"
    if value.instance_id is not None:
        said += f", static as {value.instance_id}"
    if value.server_assignor is not None:
        said += f", prefers {value.server_assignor}"
    if value.classic_member_metadata is not None:
        said += ", classic"
    return said

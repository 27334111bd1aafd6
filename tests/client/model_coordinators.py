"""The model cluster with coordinators: groups with offsets, transactions, and producers that partitions remember.

Each group and transactional id has a node that coordinates it; any other node answers NOT_COORDINATOR. `loading` makes
a node answer this many times that it is still loading.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from quire.client.offsets import TopicPartition
from quire.protocol import apis
from quire.protocol.errors import ErrorCode
from quire.protocol.messages import consumer_group_describe as new
from quire.protocol.messages import describe_groups as classic
from quire.protocol.messages import describe_producers as producers
from quire.protocol.messages import describe_transactions as transactions
from quire.protocol.messages.consumer_group_heartbeat import Assignment as HeartbeatAssignment
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from quire.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from quire.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from quire.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from quire.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from quire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from quire.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from quire.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from quire.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from quire.protocol.schema import Message
from simulator.network import Conditions
from tests.client.model_cluster import PORT, ModelCluster

API_KEYS = (8, 9, 10, 15, 16, 27, 42, 47, 61, 65, 66, 68, 69)
GROUP, TRANSACTION = 0, 1
STATES = ("Ongoing", "CompleteCommit")


@dataclass
class ModelGroup:
    coordinator: int
    protocol: str = "classic"
    state: str = "Empty"
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    members: list[classic.DescribedGroupMember] = field(default_factory=list)
    new_members: list[new.Member] = field(default_factory=list)
    # of the consumer protocol: the target assignment, and what each member last reported to read
    target: list[TopicPartition] = field(default_factory=list)
    epochs: dict[str, int] = field(default_factory=dict)
    owned: dict[str, list[TopicPartition]] = field(default_factory=dict)


@dataclass
class ModelTransaction:
    coordinator: int
    producer_id: int
    partitions: list[TopicPartition] = field(default_factory=list)
    state: str = "Ongoing"


class CoordinatedCluster(ModelCluster):
    def __init__(self, seed: int = 1, nodes: int = 1, conditions: Conditions | None = None) -> None:
        super().__init__(seed, nodes, conditions)
        self.versions |= {key: apis.VALID_VERSIONS[key] for key in API_KEYS}
        self.groups: dict[str, ModelGroup] = {}
        self.transactions: dict[str, ModelTransaction] = {}
        self.producers: dict[TopicPartition, list[producers.ProducerState]] = {}
        self._loading: dict[int, int] = {}
        self._unstable: dict[str, int] = {}

    def group(self, name: str, coordinator: int = 1, **more: object) -> ModelGroup:
        found = self.groups[name] = ModelGroup(coordinator, **more)  # type: ignore[arg-type]
        return found

    def loading(self, node: int, times: int) -> None:
        self._loading[node] = times

    def unstable(self, group: str, times: int) -> None:
        """A transaction that commits offsets of this group stays open for this many requests."""
        self._unstable[group] = times

    def asked(self, kind: type[Message]) -> list[int]:
        """The nodes that requests of this kind went to."""
        return [node for node, request in self.requests if isinstance(request, kind)]

    def refusal(self, request: Message, error: ErrorCode) -> Message:
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            return ConsumerGroupHeartbeatResponse(error_code=error)
        if isinstance(request, OffsetCommitRequest):
            parts = [OffsetCommitResponsePartition(partition_index=0, error_code=error)]
            return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=parts)])
        return super().refusal(request, error)

    # --- What brokers do

    def answer(self, node: int, request: Message) -> Message:
        answers: dict[type[Message], Callable[[int, Message], Message]] = {
            FindCoordinatorRequest: self._find_coordinator,
            ListGroupsRequest: self._list_groups,
            classic.DescribeGroupsRequest: self._describe_classic,
            new.ConsumerGroupDescribeRequest: self._describe_new,
            DeleteGroupsRequest: self._delete_groups,
            OffsetFetchRequest: self._offset_fetch,
            OffsetCommitRequest: self._offset_commit,
            OffsetDeleteRequest: self._offset_delete,
            ConsumerGroupHeartbeatRequest: self._heartbeat,
            ListTransactionsRequest: self._list_transactions,
            transactions.DescribeTransactionsRequest: self._describe_transactions,
            producers.DescribeProducersRequest: self._describe_producers,
            WriteTxnMarkersRequest: self._write_markers,
        }
        known = answers.get(type(request))
        return super().answer(node, request) if known is None else known(node, request)

    def _not_now(self, node: int) -> ErrorCode:
        if self._loading.get(node, 0):
            self._loading[node] -= 1
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NONE

    def _refusal(self, node: int, name: str, *, exists: bool) -> ErrorCode:
        """The first check of every request about a group."""
        group = self.groups.get(name)
        if group is not None and group.coordinator != node:
            return ErrorCode.NOT_COORDINATOR
        missing = group is None and exists
        return self._not_now(node) or (ErrorCode.GROUP_ID_NOT_FOUND if missing else ErrorCode.NONE)

    def _find_coordinator(self, node: int, request: Message) -> Message:
        assert isinstance(request, FindCoordinatorRequest)
        known = {GROUP: self.groups, TRANSACTION: self.transactions}[request.key_type]
        found = []
        for key in request.coordinator_keys:
            thing = known.get(key)  # type: ignore[attr-defined]
            where = self.nodes[0] if thing is None else thing.coordinator
            found.append(Coordinator(key=key, node_id=where, host=f"node-{where}", port=PORT))
        return FindCoordinatorResponse(coordinators=found)

    def _list_groups(self, node: int, request: Message) -> Message:
        assert isinstance(request, ListGroupsRequest)
        refused = self._not_now(node)
        return ListGroupsResponse(
            error_code=refused,
            groups=[
                ListedGroup(
                    group_id=name,
                    protocol_type="consumer",
                    group_state=group.state,
                    group_type=group.protocol.capitalize(),
                )
                for name, group in self.groups.items()
                if group.coordinator == node and not refused
            ],
        )

    def _describe_classic(self, node: int, request: Message) -> Message:
        assert isinstance(request, classic.DescribeGroupsRequest)
        described = []
        for name in request.groups:
            group = self.groups.get(name)
            answer = classic.DescribedGroup(group_id=name, error_code=self._refusal(node, name, exists=True))
            if group is not None and not answer.error_code:
                answer.group_state, answer.protocol_type, answer.protocol_data = group.state, "consumer", "range"
                answer.members = group.members
            described.append(answer)
        return classic.DescribeGroupsResponse(groups=described)

    def _describe_new(self, node: int, request: Message) -> Message:
        assert isinstance(request, new.ConsumerGroupDescribeRequest)
        described = []
        for name in request.group_ids:
            group = self.groups.get(name)
            answer = new.DescribedGroup(group_id=name, error_code=self._refusal(node, name, exists=True))
            if group is not None and group.protocol != "consumer" and not answer.error_code:
                answer.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            if group is not None and not answer.error_code:
                answer.group_state, answer.assignor_name, answer.group_epoch = group.state, "uniform", 7
                answer.members = group.new_members
            described.append(answer)
        return new.ConsumerGroupDescribeResponse(groups=described)

    def _delete_groups(self, node: int, request: Message) -> Message:
        assert isinstance(request, DeleteGroupsRequest)
        results = []
        for name in request.groups_names:
            code = self._refusal(node, name, exists=True)
            if not code and self.groups[name].state != "Empty":
                code = ErrorCode.NON_EMPTY_GROUP
            if not code:
                del self.groups[name]
            results.append(DeletableGroupResult(group_id=name, error_code=code))
        return DeleteGroupsResponse(results=results)

    def _offset_fetch(self, node: int, request: Message) -> Message:
        assert isinstance(request, OffsetFetchRequest)
        answers = []
        for asked in request.groups:
            answer = OffsetFetchResponseGroup(
                group_id=asked.group_id, error_code=self._refusal(node, asked.group_id, exists=False)
            )
            group = self.groups.get(asked.group_id)
            if request.require_stable and self._unstable.get(asked.group_id):
                self._unstable[asked.group_id] -= 1
                unsure = OffsetFetchResponsePartitions(committed_offset=-1, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
                answer.topics = [OffsetFetchResponseTopics(name="t", partitions=[unsure])]
            elif group is not None and not answer.error_code:
                answer.topics = [
                    OffsetFetchResponseTopics(
                        name=topic_partition.topic,
                        partitions=[
                            OffsetFetchResponsePartitions(
                                partition_index=topic_partition.partition, committed_offset=offset
                            )
                        ],
                    )
                    for topic_partition, offset in group.offsets.items()
                ]
            answers.append(answer)
        return OffsetFetchResponse(groups=answers)

    def _offset_commit(self, node: int, request: Message) -> Message:
        assert isinstance(request, OffsetCommitRequest)
        code = self._refusal(node, request.group_id, exists=False)
        group = self.groups.get(request.group_id)
        if not code and group is None:
            group = self.group(request.group_id, node)
        if not code and group is not None:
            code = _who_may_not_commit(group, request)
        topics = []
        for topic in request.topics:
            parts = []
            for part in topic.partitions:
                if group is not None and not code:
                    group.offsets[TopicPartition(topic.name, part.partition_index)] = part.committed_offset
                parts.append(OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code))
            topics.append(OffsetCommitResponseTopic(name=topic.name, partitions=parts))
        return OffsetCommitResponse(topics=topics)

    def _heartbeat(self, node: int, request: Message) -> Message:
        """The only member gets the whole target, or is fenced if the group no longer knows it."""
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        group = self.groups[request.group_id]
        code, name = self._refusal(node, request.group_id, exists=True), request.member_id
        if not code and request.member_epoch > 0 and name not in group.epochs:
            code = ErrorCode.UNKNOWN_MEMBER_ID
        if code:
            return ConsumerGroupHeartbeatResponse(error_code=code)
        if request.member_epoch < 0:
            group.epochs.pop(name, None)
            group.owned.pop(name, None)
            return ConsumerGroupHeartbeatResponse(member_epoch=-1)
        names = {topic.topic_id: topic.name for topic in self.topics.values()}
        group.state = "Stable"
        group.owned[name] = [
            TopicPartition(names[topic.topic_id], partition)
            for topic in request.topic_partitions or []
            for partition in topic.partitions
        ]
        if group.owned[name] != group.target or request.member_epoch == 0:
            group.epochs[name] = group.epochs.get(name, 0) + 1
        return ConsumerGroupHeartbeatResponse(
            member_id=name,
            member_epoch=group.epochs[name],
            heartbeat_interval_ms=1000,
            assignment=HeartbeatAssignment(
                topic_partitions=[
                    ConsumerGroupHeartbeatResponseTopicPartitions(
                        topic_id=self.topics[topic_partition.topic].topic_id, partitions=[topic_partition.partition]
                    )
                    for topic_partition in group.target
                ]
            ),
        )

    def _offset_delete(self, node: int, request: Message) -> Message:
        assert isinstance(request, OffsetDeleteRequest)
        code = self._refusal(node, request.group_id, exists=True)
        if code:
            return OffsetDeleteResponse(error_code=code)
        group = self.groups[request.group_id]
        topics = []
        for topic in request.topics:
            parts = []
            for part in topic.partitions:
                group.offsets.pop(TopicPartition(topic.name, part.partition_index), None)
                parts.append(OffsetDeleteResponsePartition(partition_index=part.partition_index))
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=parts))
        return OffsetDeleteResponse(topics=topics)

    def _list_transactions(self, node: int, request: Message) -> Message:
        assert isinstance(request, ListTransactionsRequest)
        return ListTransactionsResponse(
            error_code=self._not_now(node),
            unknown_state_filters=[state for state in request.state_filters if state not in STATES],
            transaction_states=[
                TransactionState(transactional_id=name, producer_id=found.producer_id, transaction_state=found.state)
                for name, found in self.transactions.items()
                if found.coordinator == node
                and (not request.producer_id_filters or found.producer_id in request.producer_id_filters)
            ],
        )

    def _describe_transactions(self, node: int, request: Message) -> Message:
        assert isinstance(request, transactions.DescribeTransactionsRequest)
        answers = []
        for name in request.transactional_ids:
            answer = transactions.TransactionState(transactional_id=name)
            found = self.transactions.get(name)
            if found is None:
                answer.error_code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            elif found.coordinator != node:
                answer.error_code = ErrorCode.NOT_COORDINATOR
            else:
                answer.producer_id, answer.transaction_state = found.producer_id, found.state
                answer.topics = [
                    transactions.TopicData(topic=topic_partition.topic, partitions=[topic_partition.partition])
                    for topic_partition in found.partitions
                ]
            answers.append(answer)
        return transactions.DescribeTransactionsResponse(transaction_states=answers)

    def _describe_producers(self, node: int, request: Message) -> Message:
        assert isinstance(request, producers.DescribeProducersRequest)
        topics = []
        for topic in request.topics:
            parts = []
            for index in topic.partition_indexes:
                code, _ = self._find(node, topic.name, b"", index)
                known = [] if code else self.producers.get(TopicPartition(topic.name, index), [])
                parts.append(
                    producers.PartitionResponse(partition_index=index, error_code=code, active_producers=known)
                )
            topics.append(producers.TopicResponse(name=topic.name, partitions=parts))
        return producers.DescribeProducersResponse(topics=topics)

    def _write_markers(self, node: int, request: Message) -> Message:
        assert isinstance(request, WriteTxnMarkersRequest)
        results = []
        for marker in request.markers:
            topics = []
            for topic in marker.topics:
                parts = []
                for index in topic.partition_indexes:
                    code, _ = self._find(node, topic.name, b"", index)
                    for known in [] if code else self.producers.get(TopicPartition(topic.name, index), []):
                        if known.producer_id == marker.producer_id:
                            known.current_txn_start_offset = -1
                    parts.append(WritableTxnMarkerPartitionResult(partition_index=index, error_code=code))
                topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=parts))
            results.append(WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
        return WriteTxnMarkersResponse(markers=results)


def _who_may_not_commit(group: ModelGroup, request: OffsetCommitRequest) -> ErrorCode:
    if not request.member_id:
        return ErrorCode.NONE if group.state == "Empty" else ErrorCode.UNKNOWN_MEMBER_ID
    epoch = group.epochs.get(request.member_id)
    if epoch is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if epoch == request.generation_id_or_member_epoch else ErrorCode.STALE_MEMBER_EPOCH

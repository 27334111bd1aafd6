"""A transaction coordinator with everything around it, in memory and on virtual time: log, partitions, producers.

Every step is described in plain words (`story`), from which the transcripts are made.
"""

from collections.abc import Callable, Mapping

from quire.coordinators.runtime.machine import Caller, MachineEnvironment
from quire.coordinators.runtime.record import StateRecord, encode_key, encode_value
from quire.coordinators.runtime.result import CoordinatorResult, R
from quire.coordinators.transaction.machine import TransactionMachine
from quire.coordinators.transaction.marker_sender import MarkerSender
from quire.coordinators.transaction.producer_epochs import NO_PRODUCER_ID, NeedsProducerId
from quire.coordinators.transaction.transaction_state import NAMES, TransactionState
from quire.coordinators.transaction.transactions import Markers
from quire.metadata.features import TRANSACTION_VERSION
from quire.metadata.image import ClusterImage, PartitionImage, TopicImage
from quire.pending import Pending, completed
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import GROUP_OFFSETS
from quire.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from quire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from quire.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.messages.transaction_records import TransactionLogKey, TransactionLogValue
from simulator.clock import SimClock
from tests.coordinators.sim_shard import LogEntry, SimShard
from tests.coordinators.transaction.sim_partitions import Name, SimChannel, SimPartition, shown

NODES = (1, 2)
TOPICS = {"t": 2, "u": 2, GROUP_OFFSETS: 1}

Answer = tuple[ErrorCode, int, int]
"""An error code, or a producer id and epoch."""


class SimCluster:
    """Partition n of each topic is led by node 1 if n is even, else by 2."""

    def __init__(self, transaction_version: int = 2, settings: Mapping[str, str] | None = None) -> None:
        self.story: list[str] = []
        self.clock = SimClock()
        self.partitions: dict[Name, SimPartition] = {}
        self.channel = SimChannel(self.partitions.get, self.tell)
        self.next_producer_id = 1000
        self.has_producer_ids = True
        self.coordinator_epoch = 0
        image = ClusterImage(features={TRANSACTION_VERSION: transaction_version})
        for number, (topic, count) in enumerate(TOPICS.items()):
            image.add_topic(TopicImage(topic, bytes([number]) * 16))
            for partition in range(count):
                self._add(image, topic, partition)
        self.shard: SimShard[TransactionMachine] = SimShard(self._machine, settings, clock=self.clock, image=image)
        self.shard.on_append = self._tell_record

    def tell(self, line: str) -> None:
        self.story.append(line)

    def _add(self, image: ClusterImage, topic: str, partition: int) -> None:
        leader = NODES[partition % len(NODES)]
        image.topics_by_name[topic].partitions[partition] = PartitionImage(NODES, NODES, leader)
        self.partitions[topic, partition] = SimPartition((topic, partition), self.tell)

    # --- The machine and its shard

    def _machine(self, environment: MachineEnvironment) -> TransactionMachine:
        self.coordinator_epoch += 1
        sender = MarkerSender(self.channel, self.clock, self.coordinator_epoch, self)
        return TransactionMachine(environment, sender, self)

    @property
    def image(self) -> ClusterImage:
        return self.shard.image

    def when_up_to_date(self) -> Pending[bool]:
        return completed(True)

    def markers_written(self, markers: Markers) -> None:
        self.run(lambda machine, now_ms: machine.markers_written(markers, now_ms))

    def abort_with_new_producer_id(self, transactional_id: str) -> None:
        producer_id = self.new_producer_id()
        if producer_id != NO_PRODUCER_ID:
            self.run(lambda machine, now_ms: machine.abort_timed_out(transactional_id, now_ms, producer_id))

    def new_producer_id(self) -> int:
        if not self.has_producer_ids:
            return NO_PRODUCER_ID
        self.next_producer_id += 1
        return self.next_producer_id - 1

    def run(self, operation: Callable[[TransactionMachine, int], CoordinatorResult[R]]) -> Pending[R | ApiError]:
        return self.shard.run(lambda now_ms: operation(self.shard.machine, now_ms))

    def run_with_id(
        self, operation: Callable[[TransactionMachine, int, int], CoordinatorResult[R]]
    ) -> Pending[R | ApiError]:
        """Like the handler of a request: gets a producer id if the operation needs one."""
        answer: Pending[R | ApiError] = Pending()

        def answered(first: R | ApiError) -> None:
            new_producer_id = self.new_producer_id() if isinstance(first, NeedsProducerId) else NO_PRODUCER_ID
            if new_producer_id == NO_PRODUCER_ID:
                answer.complete(first)
            else:
                self.run(lambda machine, now_ms: operation(machine, now_ms, new_producer_id)).when_done(answer.complete)

        self.run(lambda machine, now_ms: operation(machine, now_ms, NO_PRODUCER_ID)).when_done(answered)
        return answer

    # --- Events

    def crash(self) -> None:
        """The coordinator restarts, and replays the log."""
        self.channel.requests.clear()
        self.channel.answers.clear()
        self.shard.reload()

    def delete_topic(self, topic: str) -> None:
        image = self.shard.image
        for partition in image.topics_by_name[topic].partitions:
            del self.partitions[topic, partition]
        image.remove_topic(image.topics_by_name[topic])
        self.shard.change_image(image)

    def elect(self, name: Name, leader: int) -> None:
        image = self.shard.image
        topic = image.topics_by_name[name[0]]
        topic.partitions[name[1]] = topic.partitions[name[1]]._replace(leader=leader)
        self.shard.change_image(image)

    def given(self, transactional_id: str, producer_id: int, epoch: int) -> None:
        """Writes this producer id and epoch to the log, as if the producer had reached that epoch."""
        value = TransactionLogValue(
            producer_id=producer_id,
            previous_producer_id=producer_id,
            producer_epoch=epoch,
            transaction_timeout_ms=60_000,
            transaction_status=TransactionState.EMPTY,
            transaction_partitions=None,
            transaction_last_update_timestamp_ms=self.clock.now_ms(),
            transaction_start_timestamp_ms=-1,
        )
        record = StateRecord(TransactionLogKey(transactional_id=transactional_id), value, 1)
        self.shard.log.append(LogEntry(encode_key(record.key), encode_value(record)))
        self.shard.reload()

    def _tell_record(self, record: StateRecord) -> None:
        assert isinstance(record.key, TransactionLogKey)
        value = record.value
        if value is None:
            self.tell(f"log: {record.key.transactional_id} is gone")
            return
        assert isinstance(value, TransactionLogValue)
        partitions = [
            shown((topic.topic, index)) for topic in value.transaction_partitions or [] for index in topic.partition_ids
        ]
        following = f", then {value.next_producer_id}:0" if value.next_producer_id != NO_PRODUCER_ID else ""
        words = [
            f"log: {record.key.transactional_id} is {NAMES[TransactionState(value.transaction_status)]}",
            f"{value.producer_id}:{value.producer_epoch}{following}",
            *partitions,
        ]
        self.tell(" ".join(words))


class SimProducer:
    """A producer that behaves like a client: it remembers its id and epoch, and its last request."""

    def __init__(self, cluster: SimCluster, name: str, transactional_id: str, protocol: int = 2) -> None:
        self.cluster = cluster
        self.name = name
        self.transactional_id = transactional_id
        self.protocol = protocol
        self.producer_id = -1
        self.epoch = -1
        self.transaction = 0
        """Counts its transactions; partitions store the number with each batch."""
        self.last_end: EndTxnRequest | None = None

    @property
    def what(self) -> str:
        return f"{self.name}#{self.transaction}"

    def init(self, *, timeout_ms: int = 60_000, goes_on: bool = False, api_version: int = 6) -> Pending[Answer]:
        """With `goes_on` the request names its current id and epoch (KIP-360)."""
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms)
        if goes_on:
            request.producer_id, request.producer_epoch = self.producer_id, self.epoch
        caller = self._caller(api_version)

        def answered(response: InitProducerIdResponse | ApiError) -> Answer:
            if isinstance(response, ApiError):
                return self._refused(response.code)
            if response.error_code:
                return self._refused(ErrorCode(response.error_code))
            return self._goes_by(response.producer_id, response.producer_epoch)

        return self.cluster.run_with_id(
            lambda machine, now_ms, new_producer_id: machine.init_producer_id(request, caller, now_ms, new_producer_id)
        ).then(answered)

    def add(self, *names: Name, api_version: int = 3) -> Pending[ErrorCode]:
        """Like clients of protocol 1."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[index]) for topic, index in names],
        )
        caller = self._caller(api_version)

        def answered(response: AddPartitionsToTxnResponse | ApiError) -> ErrorCode:
            if isinstance(response, ApiError):
                return self._told(response.code)
            codes = [
                ErrorCode(partition.partition_error_code)
                for topic in response.results_by_topic_v3_and_below
                for partition in topic.results_by_partition
            ]
            for name, code in zip(names, codes, strict=True):
                if code is not ErrorCode.NONE:
                    self.cluster.tell(f"{self.name}: {code.name} for {shown(name)}")
            return next((code for code in codes if code is not ErrorCode.NONE), ErrorCode.NONE)

        return self.cluster.run(lambda machine, now_ms: machine.add_partitions(request, caller, now_ms)).then(answered)

    def add_offsets(self, *, api_version: int = 4) -> Pending[ErrorCode]:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id="g",
        )
        caller = self._caller(api_version)
        return self.cluster.run(lambda machine, now_ms: machine.add_offsets(request, caller, now_ms, 0)).then(
            lambda response: self._told(response.code if isinstance(response, ApiError) else ErrorCode.NONE)
        )

    def produce(self, name: Name) -> Pending[ErrorCode]:
        """Like a broker: asks the coordinator, then appends.

        With protocol 2 this adds the partition; with protocol 1 it must have been added.
        """
        partition = self.cluster.partitions[name]
        guard = partition.guard(self.producer_id, self.epoch, bumps_epoch=self.protocol == 2)
        what = self.what
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            verify_only=self.protocol == 1,
            topics=[AddPartitionsToTxnTopic(name=name[0], partitions=[name[1]])],
        )
        caller = self._caller(5)

        def answered(result: AddPartitionsToTxnResult | ApiError) -> ErrorCode:
            code = (
                result.code
                if isinstance(result, ApiError)
                else ErrorCode(result.topic_results[0].results_by_partition[0].partition_error_code)
            )
            if code is ErrorCode.NONE:
                code = partition.append(guard, what)
            else:
                partition.refuse(guard)
            return self._told(code)

        return self.cluster.run(lambda machine, now_ms: machine.add_partitions_of(transaction, caller, now_ms)).then(
            answered
        )

    def end(self, *, commit: bool) -> Pending[Answer]:
        self.last_end = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        return self.send_end(self.last_end)

    def send_end(self, request: EndTxnRequest, api_version: int | None = None) -> Pending[Answer]:
        if api_version is None:
            api_version = 5 if self.protocol == 2 else 4
        caller = self._caller(api_version)

        def answered(response: EndTxnResponse | ApiError) -> Answer:
            if isinstance(response, ApiError):
                return self._refused(response.code)
            if response.producer_id == NO_PRODUCER_ID:
                self.cluster.tell(f"{self.name}: done")
                return ErrorCode.NONE, self.producer_id, self.epoch
            return self._goes_by(response.producer_id, response.producer_epoch)

        return self.cluster.run_with_id(
            lambda machine, now_ms, new_producer_id: machine.end_txn(request, caller, now_ms, new_producer_id)
        ).then(answered)

    def _caller(self, api_version: int) -> Caller:
        return Caller(self.name, "here", api_version)

    def _goes_by(self, producer_id: int, epoch: int) -> Answer:
        self.producer_id, self.epoch = producer_id, epoch
        self.cluster.tell(f"{self.name}: {producer_id}:{epoch}")
        return ErrorCode.NONE, producer_id, epoch

    def _refused(self, code: ErrorCode) -> Answer:
        return self._told(code), -1, -1

    def _told(self, code: ErrorCode) -> ErrorCode:
        if code is not ErrorCode.NONE:
            self.cluster.tell(f"{self.name}: {code.name}")
        return code

"""The transactions of a producer, one after another: the requests to its coordinator, and how its errors are handled.

`Producer` sends the records, and calls `admits` to find out what it may send. A transaction exists at the brokers from
its first record or offset on; an empty one ends without a request. Every request is retried until its result is known:
either the transaction has ended, or `end` raises and can be called again. `transaction_state` has the states,
`transaction_requests` the requests and the meaning of their errors.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from quire.client.backoff import Backoff
from quire.client.batch import Identity
from quire.client.cluster import Cluster
from quire.client.connection import Versions
from quire.client.coordinators import ASK_AGAIN, CoordinatorType, ask_coordinator
from quire.client.errors import ClientError, UnreachableError, UnsupportedError
from quire.client.group_offsets import Committer, OffsetAndMetadata
from quire.client.offsets import TopicPartition
from quire.client.produce_responses import Verdict
from quire.client.producer_identity import ProducerIdentity
from quire.client.transaction_requests import (
    ADD_PARTITIONS,
    DEADLY,
    FENCED,
    INIT,
    INIT_WITH_IDENTITY,
    PROTOCOL_2,
    TRANSACTION_VERSION,
    VERSIONS_1,
    VERSIONS_2,
    Fate,
    add_offsets_request,
    add_partitions_request,
    end_request,
    fate_of,
    init_request,
    txn_offset_commit_request,
)
from quire.client.transaction_state import TransactionEvent, TransactionStateMachine
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from quire.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from quire.protocol.messages.end_txn import EndTxnResponse
from quire.protocol.messages.init_producer_id import InitProducerIdResponse
from quire.protocol.messages.txn_offset_commit import TxnOffsetCommitResponse
from quire.protocol.schema import Message
from quire.steps import Steps, perform, sleep

M = TypeVar("M", bound=Message)

# The end of a transaction takes a few milliseconds.
BACKOFF_MS = 10.0


class Transactions:
    """`changed` is called when more may be sent, `broken` when the rest of this transaction must not be sent."""

    def __init__(
        self,
        cluster: Cluster,
        transactional_id: str,
        identity: ProducerIdentity,
        *,
        timeout_ms: int,
        patience_ms: float,
        changed: Callable[[], None],
        broken: Callable[[Exception], None],
    ) -> None:
        self.transactional_id = transactional_id
        self.state = TransactionStateMachine()
        self.versions = VERSIONS_1
        self._cluster = cluster
        self._identity = identity
        self._timeout_ms = timeout_ms
        self._patience_ms = patience_ms
        self._changed = changed
        self._broken = broken
        self._begun = False  # whether the brokers may know of the transaction
        self._in_doubt = False  # whether a copy of a request may still arrive at its coordinator
        self._added: dict[TopicPartition, None] = {}
        self._to_add: dict[TopicPartition, None] = {}
        self._adding = False
        self._idle: list[Pending[None]] = []
        self._groups: dict[str, None] = {}

    def init(self) -> Steps[None]:
        """Replaces the previous producer with this transactional id, whose open transaction is aborted first."""
        self.state.check(TransactionEvent.INITIALIZED)
        yield from self._renew(None)
        self.state.apply(TransactionEvent.INITIALIZED)

    def begin(self) -> None:
        self.state.apply(TransactionEvent.BEGIN)
        two = self._cluster.feature_level(TRANSACTION_VERSION) >= PROTOCOL_2
        self.versions = VERSIONS_2 if two else VERSIONS_1
        self._begun = False
        self._added.clear()
        self._to_add.clear()
        self._groups.clear()

    def check_open(self) -> None:
        """Raises an error if no record can be added now."""
        if not self.state.takes_records:
            raise self.state.error or ClientError("no transaction is open; call begin before you send records")

    def admits(self, topic_partition: TopicPartition) -> bool:
        """Whether a batch for this partition may be sent now. A partition that has to be added first is added."""
        if not self.state.sends_records:
            return False
        if self.versions is VERSIONS_2 or topic_partition in self._added:
            self._begun = True
            return True
        self._to_add[topic_partition] = None
        if not self._adding:
            self._adding = True
            perform(self._add_partitions()).when_done(self._partitions_added)
        return False

    def may_retry(self, verdict: Verdict) -> bool:
        """Whether a refused batch may be sent again: not in another epoch, and not in a broken transaction."""
        return self.state.sends_records and not verdict.new_epoch

    def send_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata], member: Committer
    ) -> Steps[None]:
        """Adds offsets of a group, which are committed together with the transaction."""
        self.state.check(TransactionEvent.COMMIT)
        try:
            yield from self._send_offsets(group_id, offsets, member)
        except (ApiError, ClientError) as error:
            self._fail(error, deadly=_is_deadly(error))
            raise

    def end(self, *, committed: bool) -> Steps[None]:
        """Ends the transaction. The caller has applied COMMIT or ABORT to the state, and has no request in flight."""
        if self._adding:
            idle: Pending[None] = Pending()
            self._idle.append(idle)
            yield idle
        self.state.check(TransactionEvent.COMMIT if committed else TransactionEvent.ABORT)
        if self._begun:
            yield from self._end(committed=committed)
        self.state.apply(TransactionEvent.ENDED)

    def record_failed(self, error: Exception) -> None:
        """A record could not be delivered."""
        # The partition has a later epoch and does not know why; the coordinator's response to the abort will tell.
        outdated = isinstance(error, ApiError) and error.code == ErrorCode.INVALID_PRODUCER_EPOCH
        self._fail(error, deadly=not outdated and _is_deadly(error))

    def _fail(self, error: Exception, *, deadly: bool) -> None:
        self.state.apply(TransactionEvent.FENCED if deadly else TransactionEvent.FAILED, error)
        self._broken(error)

    # --- Requests to coordinators

    def _renew(self, identity: Identity | None) -> Steps[None]:
        response = yield from self._repeat_until_answered(
            init_request(self.transactional_id, self._timeout_ms, identity),
            InitProducerIdResponse,
            lambda answer: [answer.error_code],
            INIT if identity is None else INIT_WITH_IDENTITY,
        )
        self._cluster.feature_level(TRANSACTION_VERSION)  # caches the level while there is a connection
        self._identity.current = Identity(response.producer_id, response.producer_epoch)
        self._in_doubt = False

    def _add_partitions(self) -> Steps[None]:
        while self._to_add and self.state.sends_records:
            topic_partitions, self._to_add = list(self._to_add), {}
            self._begun = True
            yield from self._repeat_until_answered(
                add_partitions_request(self.transactional_id, self._known(), topic_partitions),
                AddPartitionsToTxnResponse,
                lambda answer: [
                    each.partition_error_code
                    for topic in answer.results_by_topic_v3_and_below
                    for each in topic.results_by_partition
                ],
                ADD_PARTITIONS,
            )
            self._added |= dict.fromkeys(topic_partitions)

    def _partitions_added(self, outcome: Exception | None) -> None:
        self._adding = False
        if outcome is not None:
            self._fail(outcome, deadly=_is_deadly(outcome))
        idle, self._idle = self._idle, []
        for waiting in idle:
            waiting.complete(None)
        self._changed()

    def _send_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata], member: Committer
    ) -> Steps[None]:
        self._begun = True
        if self.versions is VERSIONS_1 and group_id not in self._groups:
            yield from self._repeat_until_answered(
                add_offsets_request(self.transactional_id, self._known(), group_id),
                AddOffsetsToTxnResponse,
                lambda answer: [answer.error_code],
            )
            self._groups[group_id] = None
        yield from self._repeat_until_answered(
            txn_offset_commit_request(self.transactional_id, self._known(), group_id, offsets, member),
            TxnOffsetCommitResponse,
            lambda answer: [each.error_code for topic in answer.topics for each in topic.partitions],
            self.versions.txn_offset_commit,
            group_id,
        )

    def _end(self, *, committed: bool) -> Steps[None]:
        identity = self._known()
        old_rules = self.versions is VERSIONS_1
        try:
            response = yield from self._repeat_until_answered(
                end_request(self.transactional_id, identity, committed=committed),
                EndTxnResponse,
                # In protocol 1 a transaction without partitions cannot be aborted; the new epoch below is enough.
                lambda answer: [] if old_rules and not committed and _is_idle(answer) else [answer.error_code],
                self.versions.end_txn,
            )
            if not old_rules:
                if response.producer_id >= 0:
                    self._identity.current = Identity(response.producer_id, response.producer_epoch)
                self._in_doubt = False
            elif self._in_doubt or not committed:
                # In protocol 1 late copies of requests could become part of the next transaction, and the sequence
                # numbers of failed records would be missing. So the next transaction gets a new epoch.
                yield from self._renew(identity)
        except ApiError as error:
            fate, _ = fate_of([error.code])
            if fate is not Fate.AGAIN:  # otherwise the result is unknown, and the caller may try again
                failed = committed and fate is Fate.BROKEN
                self.state.apply(TransactionEvent.FAILED if failed else TransactionEvent.FENCED, error)
            raise

    def _known(self) -> Identity:
        assert self._identity.current is not None, "a transaction without a producer id"
        return self._identity.current

    def _repeat_until_answered(
        self,
        request: Message,
        response: type[M],
        codes: Callable[[M], Iterable[int]],
        versions: Versions | None = None,
        group_id: str | None = None,
    ) -> Steps[M]:
        """Repeats a request until the coordinator has carried it out or refused it; after a time-out it is unknown."""
        kind = CoordinatorType.TRANSACTION if group_id is None else CoordinatorType.GROUP
        key = group_id or self.transactional_id
        backoff = Backoff(self._cluster.random, BACKOFF_MS)
        deadline_ms = self._cluster.clock.monotonic_ms() + self._patience_ms
        while True:
            try:
                answer = yield from ask_coordinator(
                    self._cluster,
                    kind,
                    key,
                    request,
                    response,
                    lambda answer: _moved(codes(answer)),
                    versions=versions,
                    repeatable=False,
                )
                fate, code = fate_of(codes(answer))
                if fate is Fate.DONE:
                    return answer
                failure: Exception = ApiError(code, self._sentence(request, code))
            except ApiError as error:
                fate, failure = (Fate.AGAIN if error.code.retriable else Fate.DEAD), error
            except ClientError as error:
                fate, failure = (Fate.DEAD if isinstance(error, UnsupportedError) else Fate.AGAIN), error
                self._in_doubt |= not isinstance(error, UnreachableError)
                self._cluster.metadata.coordinators.pop((kind, key), None)
            if fate is not Fate.AGAIN or self._cluster.clock.monotonic_ms() > deadline_ms:
                raise failure
            yield from sleep(self._cluster.clock, backoff.next_ms())

    def _sentence(self, request: Message, code: ErrorCode) -> str:
        name = self.transactional_id
        if code in FENCED:
            return f"another producer has taken over the transactional id {name}, or its transaction took too long"
        return f"{type(request).__name__} was refused for the transactional id {name} ({code.name})"


def _moved(codes: Iterable[int]) -> ErrorCode:
    return next((ErrorCode(code) for code in codes if code in ASK_AGAIN), ErrorCode.NONE)


def _is_deadly(error: Exception) -> bool:
    return isinstance(error, UnsupportedError) or (isinstance(error, ApiError) and error.code in DEADLY)


def _is_idle(answer: EndTxnResponse) -> bool:
    return answer.error_code == ErrorCode.INVALID_TXN_STATE

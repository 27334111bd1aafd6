"""The only path from a node's other parts to the active controller, on this node or on another.

Handlers, the broker's lifecycle and the coordinators call these methods, and no part of a node reaches the controller
in any other way. If this node leads the metadata quorum, a call is a local one. Otherwise it is a request to the node
that does:

    a client's request      in an Envelope, with the client's principal, address and API version: the methods get the
                            client's `context`
    the node's own request  as itself

Both are sent again across a change of controller until the client's time-out (see `controller_request.py`), and the
answer is given when this node's image has what the request changed, or after `CATCH_UP_MS`: a client then sees its own
change at this broker. Registrations and heartbeats have one attempt each; their sender decides what comes next.

Requests from a controller listener, in an Envelope or not, are never sent on: the sender has taken this node for the
active controller, and gets NOT_CONTROLLER if it is not.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from quire.client.errors import TimedOutError
from quire.config.broker_config import BrokerConfig
from quire.controller.active_controller import ActiveController
from quire.controller.metadata_replica import MetadataReplica
from quire.controller.refusals import not_controller, refuse
from quire.node.context import NO_CONNECTION, Context
from quire.node.controller_link import ControllerLinks, Purpose
from quire.node.controller_request import ControllerRequest, says_not_controller
from quire.node.envelope import unwrap_response, wrap
from quire.node.quorum_progress import HIGH_WATERMARK, high_watermark
from quire.pending import Pending, completed
from quire.protocol.errors import ApiError, ErrorCode, ProtocolError
from quire.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from quire.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from quire.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from quire.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from quire.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from quire.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from quire.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quire.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from quire.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from quire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from quire.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from quire.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from quire.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from quire.protocol.messages.envelope import EnvelopeResponse
from quire.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quire.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from quire.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from quire.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from quire.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from quire.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from quire.protocol.schema import Message
from quire.seams import Clock, Connector, Random

Q = TypeVar("Q", bound=Message)
R = TypeVar("R")

CATCH_UP_MS = 5_000
"""How long an answer waits at most for this node's image to have what was changed."""


PRODUCER_IDS_TIMEOUT_MS = 10_000
"""A producer waits for its id, and has a time-out of its own."""


class ToController:
    __slots__ = ("_clock", "_closed", "_config", "_controller_listeners", "_links", "_open", "_random", "_replica")

    def __init__(
        self, replica: MetadataReplica, config: BrokerConfig, *, clock: Clock, network: Connector, random: Random
    ) -> None:
        self._replica = replica
        self._config = config
        self._clock = clock
        self._random = random
        self._links = ControllerLinks(
            config.node_id, replica.leader_endpoint, clock=clock, network=network, random=random
        )
        self._controller_listeners = frozenset(each.name for each in config.topology.controller_listeners)
        self._open: dict[ControllerRequest[Any], None] = {}
        """Requests that are not answered yet."""
        self._closed = False
        replica.when_leader_changes(self._leader_changed)

    def close(self) -> None:
        """Refuses what is not answered, and ends all connections to controllers."""
        self._closed = True
        for sending in list(self._open):
            sending.cancel()
        self._links.close()

    # --- Requests of clients, and topics that the node needs

    def create_topics(
        self, request: CreateTopicsRequest, context: Context | None = None
    ) -> Pending[CreateTopicsResponse]:
        return self._send(request, ActiveController.create_topics, context, request.timeout_ms)

    def delete_topics(
        self, request: DeleteTopicsRequest, context: Context | None = None
    ) -> Pending[DeleteTopicsResponse]:
        return self._send(request, ActiveController.delete_topics, context, request.timeout_ms)

    def create_partitions(
        self, request: CreatePartitionsRequest, context: Context | None = None
    ) -> Pending[CreatePartitionsResponse]:
        return self._send(request, ActiveController.create_partitions, context, request.timeout_ms)

    def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest, context: Context | None = None
    ) -> Pending[AlterPartitionReassignmentsResponse]:
        return self._send(request, ActiveController.alter_partition_reassignments, context, request.timeout_ms)

    def list_partition_reassignments(
        self, request: ListPartitionReassignmentsRequest, context: Context | None = None
    ) -> Pending[ListPartitionReassignmentsResponse]:
        command = ActiveController.list_partition_reassignments
        return self._send(request, command, context, request.timeout_ms, changes=False)

    def alter_configs(
        self, request: AlterConfigsRequest, context: Context | None = None
    ) -> Pending[AlterConfigsResponse]:
        return self._send(request, ActiveController.alter_configs, context)

    def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest, context: Context | None = None
    ) -> Pending[IncrementalAlterConfigsResponse]:
        return self._send(request, ActiveController.incremental_alter_configs, context)

    def elect_leaders(
        self, request: ElectLeadersRequest, context: Context | None = None
    ) -> Pending[ElectLeadersResponse]:
        return self._send(request, ActiveController.elect_leaders, context, request.timeout_ms)

    def update_features(
        self, request: UpdateFeaturesRequest, context: Context | None = None
    ) -> Pending[UpdateFeaturesResponse]:
        return self._send(request, ActiveController.update_features, context, request.timeout_ms)

    def unregister_broker(
        self, request: UnregisterBrokerRequest, context: Context | None = None
    ) -> Pending[UnregisterBrokerResponse]:
        return self._send(request, ActiveController.unregister_broker, context)

    def describe_quorum(
        self, request: DescribeQuorumRequest, context: Context | None = None
    ) -> Pending[DescribeQuorumResponse]:
        return self._send(request, ActiveController.describe_quorum, context, changes=False)

    def add_raft_voter(
        self, request: AddRaftVoterRequest, context: Context | None = None
    ) -> Pending[AddRaftVoterResponse]:
        return self._send(request, ActiveController.add_raft_voter, context, request.timeout_ms, changes=False)

    def remove_raft_voter(
        self, request: RemoveRaftVoterRequest, context: Context | None = None
    ) -> Pending[RemoveRaftVoterResponse]:
        return self._send(request, ActiveController.remove_raft_voter, context, changes=False)

    # --- The node's own requests, and the same from other nodes

    def update_raft_voter(
        self, request: UpdateRaftVoterRequest, context: Context | None = None
    ) -> Pending[UpdateRaftVoterResponse]:
        return self._try_once(request, ActiveController.update_raft_voter, context, purpose=Purpose.VOTERS)

    def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest, context: Context | None = None
    ) -> Pending[AllocateProducerIdsResponse]:
        """Sent again if the answer is lost: the ids of the lost block are never used."""
        command = ActiveController.allocate_producer_ids
        return self._send(
            request, command, context, PRODUCER_IDS_TIMEOUT_MS, purpose=Purpose.PRODUCER_IDS, changes=False
        )

    def register_broker(
        self, request: BrokerRegistrationRequest, context: Context | None = None
    ) -> Pending[BrokerRegistrationResponse]:
        connection_id = NO_CONNECTION if context is None else context.connection_id
        return self._try_once(
            request,
            lambda active, each: active.register_broker(each, connection_id=connection_id),
            context,
        )

    def broker_heartbeat(
        self, request: BrokerHeartbeatRequest, context: Context | None = None
    ) -> Pending[BrokerHeartbeatResponse]:
        connection_id = NO_CONNECTION if context is None else context.connection_id
        return self._try_once(
            request,
            lambda active, each: active.broker_heartbeat(each, connection_id=connection_id),
            context,
        )

    def connection_closed(self, listener: str, connection_id: int) -> None:
        """A connection to this node has ended: if a broker sent its heartbeats over it, it may be gone."""
        if self._replica.active is not None and listener in self._controller_listeners:
            self._replica.active.connection_closed(connection_id)

    @property
    def knows_controller(self) -> bool:
        return self._replica.active is not None or self._replica.leader_endpoint() is not None

    def register_controller(
        self, request: ControllerRegistrationRequest, context: Context | None = None
    ) -> Pending[ControllerRegistrationResponse]:
        return self._try_once(request, ActiveController.register_controller, context, purpose=Purpose.VOTERS)

    def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest, context: Context | None = None
    ) -> Pending[AssignReplicasToDirsResponse]:
        return self._try_once(request, ActiveController.assign_replicas_to_dirs, context, purpose=Purpose.DIRECTORIES)

    def alter_partition(
        self, request: AlterPartitionRequest, context: Context | None = None
    ) -> Pending[AlterPartitionResponse]:
        return self._try_once(request, ActiveController.alter_partition, context, purpose=Purpose.ISR)

    # --- How far the metadata log is committed

    def when_up_to_date(self, timeout_ms: float) -> Pending[bool]:
        """True when this node's image has everything that was committed when this was called; False at the time-out.

        This holds across changes of controller, also if this node was the controller: DescribeQuorum is answered only
        by a leader whose majority confirms it. (Apache Kafka's leader does not ask: if it has lost its majority, it may
        be believed until it resigns.)
        """
        reached: Pending[bool] = Pending()
        waits: list[Callable[[], None]] = []

        def end(is_up_to_date: bool) -> None:
            timer.cancel()
            for forget in waits:
                forget()
            reached.complete_once(is_up_to_date)

        timer = self._clock.call_later(timeout_ms, lambda: end(False))

        def asked(response: DescribeQuorumResponse) -> None:
            committed = high_watermark(response)
            if committed is not None and not reached.done:
                waits.append(self._replica.when_applied(committed - 1, lambda: end(True)))

        def attempt() -> Pending[Any]:
            if self._replica.active is not None:
                return self._replica.active.describe_quorum(HIGH_WATERMARK)
            return self._links.call(Purpose.PROGRESS, HIGH_WATERMARK, self._request_timeout_ms).then(_or_no_leader)

        self._start(attempt, HIGH_WATERMARK, timeout_ms).when_done(asked)
        return reached

    # --- Local calls and forwarded requests

    def _send(
        self,
        request: Q,
        command: Callable[[ActiveController, Q], Pending[R]],
        context: Context | None,
        timeout_ms: int = 0,
        *,
        purpose: Purpose = Purpose.FORWARDING,
        changes: bool = True,
        deadline_ms: float | None = None,
    ) -> Pending[R]:
        """`deadline_ms` is that of the first attempt."""
        if deadline_ms is None:
            deadline_ms = self._clock.monotonic_ms() + (timeout_ms if timeout_ms > 0 else self._request_timeout_ms)
        if self._replica.active is None and self._must_be_local(context):
            return completed(refuse(request, not_controller()))
        sender = None if context is None else replace(context)  # A connection reuses its context.
        if self._replica.active is not None:
            local = command(self._replica.active, request)
            if self._must_be_local(context):
                return local
            if local.done and not says_not_controller(local.value):
                return local
            return self._or_forwarded(
                local,
                lambda: self._send(request, command, sender, purpose=purpose, changes=changes, deadline_ms=deadline_ms),
            )

        def attempt() -> Pending[Any]:
            if self._replica.active is not None:
                return command(self._replica.active, request)
            return self._call(purpose, request, sender)

        left_ms = max(0.0, deadline_ms - self._clock.monotonic_ms())
        return self._start(attempt, request, left_ms, then_visible=changes)

    def _or_forwarded(self, local: Pending[R], send_again: Callable[[], Pending[R]]) -> Pending[R]:
        """The outcome of a local call, or that of another attempt if this node's term ended before its outcome."""
        answer: Pending[R] = Pending()

        def done(response: R) -> None:
            if says_not_controller(response):
                send_again().when_done(answer.complete)
            else:
                answer.complete(response)

        local.when_done(done)
        return answer

    def _try_once(
        self,
        request: Q,
        command: Callable[[ActiveController, Q], Pending[R]],
        context: Context | None,
        purpose: Purpose = Purpose.LIFECYCLE,
    ) -> Pending[R]:
        if self._replica.active is not None:
            return command(self._replica.active, request)
        if self._must_be_local(context):
            return completed(refuse(request, not_controller()))
        # The controller fences a broker that is silent for a session: half of it leaves time for another attempt.
        timeout_ms = self._config.get_int("broker.session.timeout.ms") / 2

        def outcome(response: Any) -> Any:
            return refuse(request, _as_api_error(response)) if isinstance(response, Exception) else response

        return self._links.call(purpose, request, timeout_ms).then(outcome)

    def _call(self, purpose: Purpose, request: Message, sender: Context | None) -> Pending[Any]:
        """One attempt to reach the active controller on another node."""
        if sender is None:
            return self._links.call(purpose, request, self._request_timeout_ms)

        def unwrapped(response: Any) -> Any:
            if not isinstance(response, EnvelopeResponse):
                return response
            try:
                answer = unwrap_response(sender, request, response)
            except ProtocolError as error:
                answer = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the controller's answer cannot be read: {error}")
            return refuse(request, answer) if isinstance(answer, ApiError) else answer

        return self._links.call(purpose, wrap(sender, request), self._request_timeout_ms).then(unwrapped)

    def _start(
        self,
        attempt: Callable[[], Pending[Any]],
        request: Message,
        timeout_ms: float,
        *,
        then_visible: bool = False,
    ) -> Pending[Any]:
        """With `then_visible` a controller's answer is given when this node's image has what it changed."""
        sending: ControllerRequest[Any] = ControllerRequest(
            attempt, lambda error: refuse(request, error), timeout_ms, self._clock, self._random
        )
        self._open[sending] = None
        answer: Pending[Any] = Pending()

        def answered(response: Any) -> None:
            self._open.pop(sending, None)
            if then_visible and sending.was_answered:
                # No earlier leader than the one that answered can be asked: epochs on this node only grow.
                self.when_up_to_date(CATCH_UP_MS).when_done(lambda _: answer.complete(response))
            else:
                answer.complete_once(response)

        sending.answer.when_done(answered)
        sending.send()
        return answer

    def _must_be_local(self, context: Context | None) -> bool:
        is_from_a_node = context is not None and context.listener in self._controller_listeners
        return is_from_a_node or self._closed

    @property
    def _request_timeout_ms(self) -> int:
        return self._config.get_int("request.timeout.ms")

    def _leader_changed(self) -> None:
        self._links.leader_changed()
        for sending in list(self._open):
            if sending.waits_to_retry:
                sending.send()


def _or_no_leader(response: Any) -> Any:
    """Apache Kafka's controllers put the error about another leader in another field."""
    if isinstance(response, DescribeQuorumResponse) and high_watermark(response) is None:
        return refuse(HIGH_WATERMARK, not_controller())
    return response


def _as_api_error(error: Exception) -> ApiError:
    code = ErrorCode.REQUEST_TIMED_OUT if isinstance(error, TimedOutError) else ErrorCode.NETWORK_EXCEPTION
    return ApiError(code, str(error))

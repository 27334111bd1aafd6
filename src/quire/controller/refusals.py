"""Responses of the controller that carry an error instead of a result, by the type of the request."""

from collections.abc import Callable
from typing import Any

from quire.controller import (
    alter_partition_reassignments,
    configs,
    create_partitions,
    create_topics,
    delete_topics,
    elect_leaders,
    list_partition_reassignments,
)
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from quire.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from quire.protocol.messages.alter_configs import AlterConfigsRequest
from quire.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from quire.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from quire.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from quire.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quire.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from quire.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from quire.protocol.messages.create_partitions import CreatePartitionsRequest
from quire.protocol.messages.create_topics import CreateTopicsRequest
from quire.protocol.messages.delete_topics import DeleteTopicsRequest
from quire.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from quire.protocol.messages.elect_leaders import ElectLeadersRequest
from quire.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from quire.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from quire.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from quire.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from quire.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from quire.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from quire.protocol.schema import Message


def not_controller() -> ApiError:
    return ApiError(ErrorCode.NOT_CONTROLLER, "this node is not the active controller")


def no_room() -> ApiError:
    return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk of the metadata log is full: try again when there is room")


def refuse(request: Message, error: ApiError) -> Any:
    """The response to `request` with `error` for each item."""
    return _REFUSALS[type(request)](request, error)


def _error_code_only(response: type[Message]) -> Callable[[Message, ApiError], Message]:
    return lambda _request, error: response(error_code=error.code)


def _code_and_message(response: type[Message]) -> Callable[[Message, ApiError], Message]:
    return lambda _request, error: response(error_code=error.code, error_message=error.message)


_REFUSALS: dict[type[Message], Callable[[Any, ApiError], Message]] = {
    CreateTopicsRequest: create_topics.refuse,
    DeleteTopicsRequest: delete_topics.refuse,
    CreatePartitionsRequest: create_partitions.refuse,
    AlterPartitionReassignmentsRequest: alter_partition_reassignments.refuse,
    ListPartitionReassignmentsRequest: list_partition_reassignments.refuse,
    AlterConfigsRequest: configs.refuse,
    IncrementalAlterConfigsRequest: configs.refuse_incremental,
    ElectLeadersRequest: elect_leaders.refuse,
    UpdateFeaturesRequest: _code_and_message(UpdateFeaturesResponse),
    DescribeQuorumRequest: _code_and_message(DescribeQuorumResponse),
    AssignReplicasToDirsRequest: _error_code_only(AssignReplicasToDirsResponse),
    AlterPartitionRequest: _error_code_only(AlterPartitionResponse),
    AllocateProducerIdsRequest: _error_code_only(AllocateProducerIdsResponse),
    BrokerRegistrationRequest: _error_code_only(BrokerRegistrationResponse),
    BrokerHeartbeatRequest: _error_code_only(BrokerHeartbeatResponse),
    ControllerRegistrationRequest: _code_and_message(ControllerRegistrationResponse),
    UnregisterBrokerRequest: _code_and_message(UnregisterBrokerResponse),
    AddRaftVoterRequest: _code_and_message(AddRaftVoterResponse),
    RemoveRaftVoterRequest: _code_and_message(RemoveRaftVoterResponse),
    UpdateRaftVoterRequest: _error_code_only(UpdateRaftVoterResponse),
}

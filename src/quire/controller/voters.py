"""AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter: requests about the voters of the metadata quorum (KIP-853).

The voters are control records of the log, not of the image, so these requests go to the log's state machine. It makes
one change at a time and answers when that is committed.
"""

from quire.metadata.features import KRAFT_VERSION, SUPPORTED, has_controller_registrations
from quire.metadata.image import ClusterImage
from quire.pending import Pending, completed
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from quire.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from quire.protocol.messages.update_features import UpdateFeaturesResponse
from quire.protocol.messages.update_raft_voter import (
    CurrentLeader,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from quire.raft.metadata_log import MetadataLog
from quire.raft.refusals import not_leader
from quire.raft.replicas import Endpoint, ReplicaKey, Voter
from quire.raft.voter_changes import AddVoter, RemoveVoter, UpdateVoter, UpgradeKraftVersion


def add_voter(
    log: MetadataLog, cluster_id: str, image: ClusterImage, request: AddRaftVoterRequest
) -> Pending[AddRaftVoterResponse]:
    error = _wrong_cluster(cluster_id, request.cluster_id)
    if error is None and not request.listeners:
        error = ApiError(ErrorCode.INVALID_REQUEST, "a voter needs an address")
    if error is None and _is_only_a_broker(image, request.voter_id):
        error = ApiError(
            ErrorCode.INVALID_REQUEST,
            f"node {request.voter_id} is only a broker and cannot vote; add controller to its process.roles first",
        )
    if error is not None:
        return completed(AddRaftVoterResponse(error_code=error.code, error_message=error.message))
    voter = Voter(
        ReplicaKey(request.voter_id, request.voter_directory_id),
        tuple(Endpoint(each.name, each.host, each.port) for each in request.listeners),
        _supported(image, request.voter_id),
    )
    changed = log.change_voters(AddVoter(voter), until_committed=request.ack_when_committed)
    return changed.then(lambda error: AddRaftVoterResponse(error_code=error.code, error_message=error.message or None))


def remove_voter(
    log: MetadataLog, cluster_id: str, request: RemoveRaftVoterRequest
) -> Pending[RemoveRaftVoterResponse]:
    error = _wrong_cluster(cluster_id, request.cluster_id)
    if error is not None:
        return completed(RemoveRaftVoterResponse(error_code=error.code, error_message=error.message))
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    changed = log.change_voters(RemoveVoter(key))
    return changed.then(
        lambda error: RemoveRaftVoterResponse(error_code=error.code, error_message=error.message or None)
    )


def update_voter(
    log: MetadataLog, cluster_id: str, request: UpdateRaftVoterRequest
) -> Pending[UpdateRaftVoterResponse]:
    error = _wrong_cluster(cluster_id, request.cluster_id)
    if error is not None:
        return completed(UpdateRaftVoterResponse(error_code=error.code))
    if not request.listeners:
        return completed(_update_response(log, ErrorCode.INVALID_REQUEST))
    if request.current_leader_epoch != log.epoch:
        return completed(_update_response(log, not_leader(request.current_leader_epoch, log.epoch)))
    versions = request.k_raft_version_feature
    voter = Voter(
        ReplicaKey(request.voter_id, request.voter_directory_id),
        tuple(Endpoint(each.name, each.host, each.port) for each in request.listeners),
        (versions.min_supported_version, versions.max_supported_version),
    )
    return log.change_voters(UpdateVoter(voter)).then(lambda error: _update_response(log, error.code))


def upgrade(
    log: MetadataLog, kraft_version: int, updated: Pending[UpdateFeaturesResponse]
) -> Pending[UpdateFeaturesResponse]:
    """Upgrades the version of KRaft when the other features of a request are updated without an error."""
    answer: Pending[UpdateFeaturesResponse] = Pending()

    def upgraded(error: ApiError) -> None:
        answer.complete(UpdateFeaturesResponse(error_code=error.code, error_message=error.message or None))

    def features_updated(response: UpdateFeaturesResponse) -> None:
        if response.error_code != ErrorCode.NONE:
            answer.complete(response)
        else:
            log.change_voters(UpgradeKraftVersion(kraft_version)).when_done(upgraded)

    updated.when_done(features_updated)
    return answer


def _update_response(log: MetadataLog, code: ErrorCode) -> UpdateRaftVoterResponse:
    leader = log.leader_endpoint
    if leader is None:
        return UpdateRaftVoterResponse(error_code=code)
    current = CurrentLeader(leader_id=leader.node_id, leader_epoch=log.epoch, host=leader.host, port=leader.port)
    return UpdateRaftVoterResponse(error_code=code, current_leader=current)


def _wrong_cluster(cluster_id: str, named: str | None) -> ApiError | None:
    if named is None or named == cluster_id:
        return None
    return ApiError(ErrorCode.INCONSISTENT_CLUSTER_ID, f"this is cluster {cluster_id}, not {named}")


def _is_only_a_broker(image: ClusterImage, node_id: int) -> bool:
    """It would count towards every majority and never grant a vote."""
    registers = has_controller_registrations(image.metadata_version)
    return registers and node_id in image.brokers and node_id not in image.controllers


def _supported(image: ClusterImage, node_id: int) -> tuple[int, int]:
    """The versions in a controller's registration; every Quire node supports both."""
    controller = image.controllers.get(node_id)
    if controller is None:
        return SUPPORTED[KRAFT_VERSION]
    return next(((low, high) for name, low, high in controller.features if name == KRAFT_VERSION), (0, 0))

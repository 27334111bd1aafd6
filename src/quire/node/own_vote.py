"""Keeps a controller's own entry in the voter set up to date (KIP-853).

A voter whose addresses changed tells the leader. In a static quorum (kraft.version 0) each voter tells the leader its
directory id once per leader, which the upgrade to kraft.version 1 needs. With `controller.quorum.auto.join.enable` a
controller that is not a voter asks to become one, and removes the voter that it was before its disk was replaced.

A controller whose settings name no other one formats an empty disk by itself. So it warns when others vote, too.
"""

import logging
from typing import TypeVar

from quire.metadata.features import KRAFT_VERSION, SUPPORTED
from quire.node.to_controller import ToController
from quire.pending import Pending
from quire.protocol import uuids
from quire.protocol.errors import ErrorCode
from quire.protocol.messages import add_raft_voter as add
from quire.protocol.messages import update_raft_voter as update
from quire.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from quire.raft.metadata_log import MetadataLog
from quire.raft.replicas import Voter, VoterSet
from quire.raft.voter_changes import DYNAMIC_QUORUM
from quire.seams import Clock, Timer

log = logging.getLogger("quire.raft")

Wanted = add.AddRaftVoterRequest | RemoveRaftVoterRequest | update.UpdateRaftVoterRequest
VoterResponse = add.AddRaftVoterResponse | RemoveRaftVoterResponse | update.UpdateRaftVoterResponse

R = TypeVar("R", bound=VoterResponse)

JOIN_TIMEOUT_MS = 5_000


def wanted_change(
    own: Voter,
    voters: VoterSet,
    *,
    kraft_version: int,
    epoch: int,
    cluster_id: str,
    may_join: bool,
    has_reported: bool,
) -> Wanted | None:
    """The request that makes the voter set right for this controller; None if it is.

    `has_reported` tells whether the leader of this epoch knows the controller's directory.
    """
    present = voters.get(own.key.id)
    if kraft_version < DYNAMIC_QUORUM:
        return _update(own, cluster_id, epoch) if present is not None and not has_reported else None
    if present is None:
        return _add(own, cluster_id) if may_join and len(voters) else None
    if present.key != own.key:
        old = present.key.directory_id
        is_replaced = old != uuids.ZERO and may_join
        return (
            RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=own.key.id, voter_directory_id=old)
            if is_replaced
            else None
        )
    # No node reaches the only voter through the voter set, and its port may change with each start.
    is_right = len(voters) == 1 or present == own
    return None if is_right else _update(own, cluster_id, epoch)


def _add(own: Voter, cluster_id: str) -> add.AddRaftVoterRequest:
    return add.AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=JOIN_TIMEOUT_MS,
        voter_id=own.key.id,
        voter_directory_id=own.key.directory_id,
        listeners=[add.Listener(**each._asdict()) for each in own.endpoints],
        # The new voter is needed to commit the change if the others are two: waiting for that would hold it up.
        ack_when_committed=False,
    )


def _update(own: Voter, cluster_id: str, epoch: int) -> update.UpdateRaftVoterRequest:
    low, high = own.kraft_versions
    return update.UpdateRaftVoterRequest(
        cluster_id=cluster_id,
        current_leader_epoch=epoch,
        voter_id=own.key.id,
        voter_directory_id=own.key.directory_id,
        listeners=[update.Listener(**each._asdict()) for each in own.endpoints],
        k_raft_version_feature=update.KRaftVersionFeature(min_supported_version=low, max_supported_version=high),
    )


class OwnVote:
    """Looks at the voter set now and then, and sends what is wanted to the leader, one request at a time."""

    __slots__ = (
        "_clock",
        "_cluster_id",
        "_ended",
        "_interval_ms",
        "_is_alone",
        "_is_sending",
        "_log",
        "_may_join",
        "_reported_in",
        "_timer",
        "_to_controller",
    )

    def __init__(
        self,
        metadata_log: MetadataLog,
        to_controller: ToController,
        cluster_id: str,
        *,
        clock: Clock,
        interval_ms: int,
        may_join: bool,
        is_alone: bool,
    ) -> None:
        """`is_alone`: as far as the settings say."""
        self._log = metadata_log
        self._to_controller = to_controller
        self._cluster_id = cluster_id
        self._clock = clock
        self._interval_ms = interval_ms
        self._may_join = may_join
        self._is_alone = is_alone
        self._reported_in = -1
        """The epoch whose leader knows this controller's directory."""
        self._is_sending = False
        self._timer: Timer | None = None
        self._ended = False

    def start(self) -> None:
        self._check()

    def end(self) -> None:
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        self._timer = self._clock.call_later(self._interval_ms, self._check)
        self._warn_if_settings_are_old()
        if self._is_sending or self._ended or self._log.leader_id is None:
            return
        request = wanted_change(
            Voter(self._log.key, self._log.own_endpoints, SUPPORTED[KRAFT_VERSION]),
            self._log.voters,
            kraft_version=self._log.kraft_version,
            epoch=self._log.epoch,
            cluster_id=self._cluster_id,
            may_join=self._may_join,
            has_reported=self._reported_in == self._log.epoch,
        )
        if request is not None:
            self._is_sending = True
            self._send(request, self._log.epoch)

    def _warn_if_settings_are_old(self) -> None:
        others = self._log.voters.others(self._log.key)
        if self._is_alone and others:
            self._is_alone = False
            log.warning(
                "controller.quorum.bootstrap.servers names this controller alone, but node %s votes, too: add the "
                "other controllers; without them this node would found another cluster if its disk were emptied",
                ", ".join(map(str, others)),
            )

    def _send(self, request: Wanted, epoch: int) -> None:
        match request:
            case add.AddRaftVoterRequest():
                self._finish(self._to_controller.add_raft_voter(request), "join the quorum", epoch)
            case RemoveRaftVoterRequest():
                self._finish(self._to_controller.remove_raft_voter(request), "remove its former vote", epoch)
            case update.UpdateRaftVoterRequest():
                self._finish(self._to_controller.update_raft_voter(request), "update its vote", epoch)

    def _finish(self, answer: Pending[R], action: str, epoch: int) -> None:
        def answered(response: R) -> None:
            self._is_sending = False
            if response.error_code == ErrorCode.NONE:
                self._reported_in = epoch
                log.debug("this controller asked to %s", action)
            elif not self._ended:
                log.info("this controller could not %s yet: %s", action, ErrorCode(response.error_code).name)

        answer.when_done(answered)

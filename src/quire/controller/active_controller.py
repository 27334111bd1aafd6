"""The active controller: turns requests about the cluster into metadata records, and answers once they are committed.

It exists while this node leads the metadata quorum. `MetadataReplica` creates one at each election and destroys it when
the term ends, so nothing of one term can reach the next: not the image that is ahead of what is committed, not the
sessions of brokers, not the requests that wait. Each request goes to a manager, a plain function of the image and the
request, and `CommandRunner` writes what the manager returns.
"""

import logging
from collections.abc import Sequence

from quire.config.broker_config import BrokerConfig
from quire.controller import (
    alter_partition,
    alter_partition_reassignments,
    assign_directories,
    brokers,
    configs,
    create_partitions,
    create_topics,
    delete_topics,
    elect_leaders,
    elections,
    features,
    list_partition_reassignments,
    producer_ids,
    quorum,
    voters,
)
from quire.controller.bootstrap import activation_records
from quire.controller.broker_sessions import NO_CONNECTION, BrokerSessions
from quire.controller.command_runner import CommandRunner
from quire.controller.leader_rebalance import LeaderRebalance
from quire.controller.refusals import not_controller, refuse
from quire.metadata.image import ClusterImage
from quire.pending import Pending
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
from quire.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quire.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from quire.protocol.messages.metadata_records import NoOpRecord
from quire.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from quire.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from quire.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from quire.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from quire.protocol.schema import Message
from quire.raft.metadata_log import MetadataLog
from quire.seams import Clock, Connector, Random, Timer

logger = logging.getLogger("quire.controller")


class ActiveController:
    def __init__(
        self,
        config: BrokerConfig,
        cluster_id: str,
        log: MetadataLog,
        image: ClusterImage,
        *,
        clock: Clock,
        random: Random,
        network: Connector,
        incarnation_id: bytes,
    ) -> None:
        """`image` is a copy of the committed image, which this object changes. `incarnation_id` is this process's."""
        self._config = config
        self._cluster_id = cluster_id
        self._log = log
        self._clock = clock
        self._random = random
        self._commands = CommandRunner(log, image, clock)
        self._sessions = BrokerSessions(
            config, cluster_id, log, self._commands, clock=clock, network=network, incarnation_id=incarnation_id
        )
        self._leaders = LeaderRebalance(config, self._commands, clock)
        self._idle_timer: Timer | None = None

    # --- The term

    def start(self, bootstrap: Sequence[Message], epoch: int, *, in_transaction: bool) -> None:
        """Writes what an activation writes. Every broker gets a full session timeout to send its first heartbeat."""
        image = self._commands.image
        logger.info("controller active epoch=%d offset=%d", epoch, image.offset)
        self._commands.write(activation_records(image, self._config, bootstrap, in_transaction=in_transaction))
        self._commands.write_to_the_end(lambda image: elections.settle_all(image, self._config))
        self._sessions.start()
        self._leaders.start()
        self._tick_while_idle()

    def committed(self, offset: int) -> None:
        """Everything below `offset` is committed, and this node's image has it."""
        self._commands.committed(offset)

    def when_written(self) -> Pending[None]:
        """Completes when everything that this term has written so far is committed, or when the term ends."""
        return self._commands.when_written()

    def stop(self) -> None:
        logger.info("controller resigned")
        self._sessions.stop()
        self._leaders.stop()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._commands.stop()

    # --- Topics and settings

    def create_topics(self, request: CreateTopicsRequest) -> Pending[CreateTopicsResponse]:
        return self._commands.run_in_turns(
            lambda image: create_topics.create_topics(image, self._config, self._random, request), request
        )

    def delete_topics(self, request: DeleteTopicsRequest) -> Pending[DeleteTopicsResponse]:
        return self._commands.run_in_turns(
            lambda image: delete_topics.delete_topics(image, self._config, request), request
        )

    def create_partitions(self, request: CreatePartitionsRequest) -> Pending[CreatePartitionsResponse]:
        return self._commands.run_in_turns(
            lambda image: create_partitions.create_partitions(image, self._random, request), request
        )

    def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> Pending[AlterPartitionReassignmentsResponse]:
        return self._commands.run_in_turns(
            lambda image: alter_partition_reassignments.alter_partition_reassignments(image, self._config, request),
            request,
        )

    def list_partition_reassignments(
        self, request: ListPartitionReassignmentsRequest
    ) -> Pending[ListPartitionReassignmentsResponse]:
        return self._commands.run_in_turns(
            lambda image: list_partition_reassignments.list_partition_reassignments(image, request), request
        )

    def alter_configs(self, request: AlterConfigsRequest) -> Pending[AlterConfigsResponse]:
        return self._commands.run_in_turns(lambda image: configs.alter_configs(image, self._config, request), request)

    def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest
    ) -> Pending[IncrementalAlterConfigsResponse]:
        return self._commands.run_in_turns(
            lambda image: configs.incremental_alter_configs(image, self._config, request), request
        )

    def elect_leaders(self, request: ElectLeadersRequest) -> Pending[ElectLeadersResponse]:
        return self._commands.run_in_turns(
            lambda image: elect_leaders.elect_leaders(image, self._config, request), request
        )

    # --- The cluster

    def update_features(self, request: UpdateFeaturesRequest) -> Pending[UpdateFeaturesResponse]:
        """The version of KRaft is changed last, by a control record. Whether that is possible is checked first."""
        log = self._log
        kraft_version = features.kraft_upgrade(request, log.kraft_version)
        updated = self._commands.run(
            lambda image: features.update_features(
                image, self._config, log.kraft_version, request, check_kraft_version=log.check_upgrade
            ),
            request,
        )
        if kraft_version is None or request.validate_only:
            return updated
        return voters.upgrade(log, kraft_version, updated)

    def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> Pending[AllocateProducerIdsResponse]:
        return self._commands.run(lambda image: producer_ids.allocate_producer_ids(image, request), request)

    def register_controller(self, request: ControllerRegistrationRequest) -> Pending[ControllerRegistrationResponse]:
        return self._commands.run(lambda image: brokers.register_controller(image, request), request)

    def describe_quorum(self, request: DescribeQuorumRequest) -> Pending[DescribeQuorumResponse]:
        """Nodes rely on the high watermark to be current, so the voters must confirm first that this node leads."""

        def describe(leads: bool) -> DescribeQuorumResponse:
            if not leads:
                refused: DescribeQuorumResponse = refuse(request, not_controller())
                return refused
            return quorum.describe_quorum(self._log, self._clock, request)

        return self._log.check_leadership().then(describe)

    # --- The voters of the quorum

    def add_raft_voter(self, request: AddRaftVoterRequest) -> Pending[AddRaftVoterResponse]:
        return voters.add_voter(self._log, self._cluster_id, self._commands.image, request)

    def remove_raft_voter(self, request: RemoveRaftVoterRequest) -> Pending[RemoveRaftVoterResponse]:
        return voters.remove_voter(self._log, self._cluster_id, request)

    def update_raft_voter(self, request: UpdateRaftVoterRequest) -> Pending[UpdateRaftVoterResponse]:
        return voters.update_voter(self._log, self._cluster_id, request)

    # --- Brokers and their sessions

    def register_broker(
        self, request: BrokerRegistrationRequest, *, connection_id: int = NO_CONNECTION
    ) -> Pending[BrokerRegistrationResponse]:
        return self._commands.run_to_the_end(
            lambda image: self._sessions.register(image, request, connection_id), request
        )

    def unregister_broker(self, request: UnregisterBrokerRequest) -> Pending[UnregisterBrokerResponse]:
        """Its session ends by itself. If nothing can be written, the broker stays registered, and is still watched."""
        return self._commands.run_to_the_end(
            lambda image: brokers.unregister_broker(image, self._config, request), request
        )

    def broker_heartbeat(
        self, request: BrokerHeartbeatRequest, *, connection_id: int = NO_CONNECTION
    ) -> Pending[BrokerHeartbeatResponse]:
        return self._commands.run_to_the_end(lambda image: self._sessions.heard(image, request, connection_id), request)

    def connection_closed(self, connection_id: int) -> None:
        """A connection to this node's controller listener has ended."""
        self._sessions.connection_closed(connection_id)

    def assign_replicas_to_dirs(self, request: AssignReplicasToDirsRequest) -> Pending[AssignReplicasToDirsResponse]:
        return self._commands.run(
            lambda image: assign_directories.assign_replicas_to_dirs(image, self._config, request), request
        )

    def alter_partition(self, request: AlterPartitionRequest) -> Pending[AlterPartitionResponse]:
        """It starts at once: until it is committed, acks=all waits for a replica that may be gone."""
        return self._commands.run_to_the_end(
            lambda image: alter_partition.alter_partition(image, self._config, request), request
        )

    # --- An idle log

    def _tick_while_idle(self) -> None:
        """Appends a NoOpRecord whenever the log has not grown for `metadata.max.idle.interval.ms`.

        Followers of a log that does not grow cannot tell an idle leader from a lost one. Without followers nothing is
        written; each interval checks again, because observers come and go.
        """
        interval_ms = self._config.get_int("metadata.max.idle.interval.ms")
        if interval_ms <= 0:
            return
        before = self._log.next_offset

        def tick() -> None:
            if self._log.has_followers and self._log.next_offset == before and not self._log.waits_for_room:
                self._commands.write([NoOpRecord()])
            self._tick_while_idle()

        self._idle_timer = self._clock.call_later(interval_ms, tick)

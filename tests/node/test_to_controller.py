"""`ToController`, to a controller on this node or on another: a broker on its own simulated host, beside the leader."""

from dataclasses import replace
from typing import Any, cast

import pytest

from quire.config.broker_config import BrokerConfig
from quire.controller.active_controller import ActiveController
from quire.controller.metadata_replica import MetadataReplica
from quire.controller.refusals import not_controller, refuse
from quire.node.authorizer import AclOperation, Authorizer, Resource
from quire.node.context import Context, Principal
from quire.node.to_controller import CATCH_UP_MS, ToController
from quire.pending import Pending
from quire.protocol.errors import ErrorCode
from quire.protocol.messages import incremental_alter_configs as incremental
from quire.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from quire.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from quire.protocol.messages.alter_partition import AlterPartitionRequest
from quire.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from quire.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from quire.protocol.messages.broker_registration import BrokerRegistrationRequest
from quire.protocol.messages.controller_registration import ControllerRegistrationRequest
from quire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from quire.protocol.messages.delete_topics import DeleteTopicsRequest
from quire.protocol.messages.describe_quorum import DescribeQuorumRequest
from quire.protocol.messages.elect_leaders import ElectLeadersRequest
from quire.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from quire.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from quire.protocol.messages.unregister_broker import UnregisterBrokerRequest
from quire.protocol.messages.update_features import UpdateFeaturesRequest
from quire.raft.wire import LeaderEndpoint
from simulator.random import SimRandom
from tests.controller.sim_controller import FROM_A_NODE, SimController
from tests.node.conftest import SimulatedNode


def test_every_request_of_a_node_is_refused_by_a_controller_that_is_not_active() -> None:
    sim = SimController().start()
    sim.replica.close()
    controller, refused = sim.controller, ErrorCode.NOT_CONTROLLER
    assert (
        controller.create_topics(CreateTopicsRequest(topics=[CreatableTopic(name="a")]), FROM_A_NODE)
        .value.topics[0]
        .error_code
        == refused
    )
    gone = controller.delete_topics(DeleteTopicsRequest(topic_names=["a"]), FROM_A_NODE)
    assert gone.value.responses[0].error_code == refused
    grown = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a", count=2)])
    assert controller.create_partitions(grown, FROM_A_NODE).value.results[0].error_code == refused
    whole = AlterConfigsRequest(resources=[AlterConfigsResource(resource_type=2, resource_name="a")])
    assert controller.alter_configs(whole, FROM_A_NODE).value.responses[0].error_code == refused
    single = incremental.IncrementalAlterConfigsRequest(
        resources=[incremental.AlterConfigsResource(resource_type=2, resource_name="a")]
    )
    assert controller.incremental_alter_configs(single, FROM_A_NODE).value.responses[0].error_code == refused
    assert controller.elect_leaders(ElectLeadersRequest(), FROM_A_NODE).value.error_code == refused
    moved = AlterPartitionReassignmentsRequest()
    assert controller.alter_partition_reassignments(moved, FROM_A_NODE).value.error_code == refused
    listed = ListPartitionReassignmentsRequest()
    assert controller.list_partition_reassignments(listed, FROM_A_NODE).value.error_code == refused
    assert controller.update_features(UpdateFeaturesRequest(), FROM_A_NODE).value.error_code == refused
    assert controller.allocate_producer_ids(AllocateProducerIdsRequest(), FROM_A_NODE).value.error_code == refused
    assert controller.alter_partition(AlterPartitionRequest(), FROM_A_NODE).value.error_code == refused
    assert controller.register_broker(sim.registration(), FROM_A_NODE).value.error_code == refused
    assert controller.broker_heartbeat(BrokerHeartbeatRequest(), FROM_A_NODE).value.error_code == refused
    assert controller.register_controller(ControllerRegistrationRequest(), FROM_A_NODE).value.error_code == refused
    assert controller.unregister_broker(UnregisterBrokerRequest(), FROM_A_NODE).value.error_code == refused
    assert controller.describe_quorum(DescribeQuorumRequest(), FROM_A_NODE).value.error_code == refused


CLIENT = Context("PLAINTEXT", Principal("User", "alice"), "app", "10.1.2.3:4000", api_version=7)
CONTROLLER_PORT = 9093


class OtherReplica:
    """The metadata replica of a broker on another node: its image is that of the leader, as far as the test says."""

    def __init__(self, node: SimulatedNode) -> None:
        self._node = node
        self.active = None
        self.endpoint: LeaderEndpoint | None = LeaderEndpoint(1, "node", CONTROLLER_PORT)
        self.holds_back = False
        self.waiting: list[tuple[int, Any]] = []
        self.leader_changed: list[Any] = []

    def leader_endpoint(self) -> LeaderEndpoint | None:
        return self.endpoint

    def when_leader_changes(self, callback: Any) -> None:
        self.leader_changed.append(callback)

    def when_applied(self, offset: int, callback: Any) -> Any:
        if self.holds_back:
            self.waiting.append((offset, callback))
        else:
            callback()
        return self.waiting.clear

    def changes_to(self, endpoint: LeaderEndpoint | None) -> None:
        self.endpoint = endpoint
        for callback in self.leader_changed:
            callback()


class OtherBroker:
    def __init__(self, node: SimulatedNode) -> None:
        self.node = node
        self.replica = OtherReplica(node)
        settings = {"log.dirs": "/other", "node.id": "2", "request.timeout.ms": "20000"}
        self.door = ToController(
            cast(MetadataReplica, self.replica),
            BrokerConfig.standalone(settings),
            clock=node.node.clock,
            network=node.network.host("other"),
            random=SimRandom(7).stream("other"),
        )

    def create(self, name: str, timeout_ms: int = 10_000, context: Context | None = CLIENT) -> Any:
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms)
        return self.door.create_topics(request, context)

    def settle(self, pending: Any) -> Any:
        self.node.clock.run_until(lambda: pending.done)
        return pending.value

    @property
    def now_ms(self) -> float:
        return self.node.clock.monotonic_ms()


@pytest.fixture
def broker(node: SimulatedNode) -> OtherBroker:
    return OtherBroker(node)


@pytest.mark.parametrize("context", [CLIENT, None])
def test_a_request_is_carried_out_on_the_node_that_leads(broker: OtherBroker, context: Context | None) -> None:
    created = broker.settle(broker.create("t", context=context))
    assert created.topics[0].error_code == ErrorCode.NONE
    assert broker.node.node.image.topic("t") is not None


def test_the_controller_authorizes_the_client(broker: OtherBroker) -> None:
    class Suspicious(Authorizer):
        def allows(self, context: Context, operation: AclOperation, resource: Resource, name: str) -> bool:
            return context.principal.name != "alice"

    broker.node.node.authorizer = Suspicious()
    assert broker.settle(broker.create("t")).topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert broker.settle(broker.create("u", context=None)).topics[0].error_code == ErrorCode.NONE


def test_an_answer_waits_until_the_brokers_own_image_has_the_change(broker: OtherBroker) -> None:
    broker.replica.holds_back = True
    pending = broker.create("t")
    broker.node.clock.run_until(lambda: bool(broker.replica.waiting))
    ((offset, applied),) = broker.replica.waiting
    assert not pending.done
    assert offset >= broker.node.node.image.offset, "the topic is at or before this offset"
    applied()
    assert pending.done


def test_an_image_that_stays_behind_delays_an_answer_only_so_long(broker: OtherBroker) -> None:
    broker.replica.holds_back = True
    started_ms = broker.now_ms
    assert broker.settle(broker.create("t")).topics[0].error_code == ErrorCode.NONE
    assert CATCH_UP_MS <= broker.now_ms - started_ms < CATCH_UP_MS + 1_000
    assert broker.replica.waiting == [], "no request waits for the image"


def test_a_request_waits_until_there_is_a_controller(broker: OtherBroker) -> None:
    broker.replica.endpoint = None
    pending = broker.create("t")
    broker.node.clock.run_for(3_000)
    assert not pending.done
    asked_ms = broker.now_ms
    broker.replica.changes_to(LeaderEndpoint(1, "node", CONTROLLER_PORT))
    assert broker.settle(pending).topics[0].error_code == ErrorCode.NONE
    assert broker.now_ms - asked_ms < 50, "it does not wait for its back-off"


def test_a_request_is_sent_again_while_the_node_does_not_lead(broker: OtherBroker) -> None:
    node = broker.node.node
    node.metadata.leader_changed(None, 98)
    pending = broker.create("t")
    broker.node.clock.run_for(2_000)
    assert not pending.done
    node.metadata.leader_changed(node.node_id, 99)
    assert broker.settle(pending).topics[0].error_code == ErrorCode.NONE


def test_a_request_is_sent_again_after_its_connection_is_lost(broker: OtherBroker) -> None:
    broker.settle(broker.create("first"))
    pending = broker.create("t")
    assert broker.node.network.break_connections("other")
    assert broker.settle(pending).topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    assert broker.node.node.image.topic("t") is not None


def test_a_request_that_waits_for_a_lost_controller_goes_to_the_next(broker: OtherBroker) -> None:
    broker.settle(broker.create("first"))
    broker.node.network.cut("other", "node")
    pending = broker.create("t")
    broker.node.clock.run_for(1_000)
    broker.replica.changes_to(None)
    broker.node.network.heal()
    broker.replica.changes_to(LeaderEndpoint(1, "node", CONTROLLER_PORT))
    assert broker.settle(pending).topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


def test_the_client_is_answered_at_its_time_out(broker: OtherBroker) -> None:
    broker.replica.endpoint = None
    started_ms = broker.now_ms
    refused = broker.settle(broker.create("t", timeout_ms=3_000)).topics[0]
    assert (refused.error_code, refused.name) == (ErrorCode.REQUEST_TIMED_OUT, "t")
    assert broker.now_ms - started_ms == pytest.approx(3_000, abs=1)
    assert broker.settle(broker.create("t", timeout_ms=0)).topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert broker.now_ms - started_ms == pytest.approx(23_000, abs=2), "request.timeout.ms where it names none"


def test_a_client_that_times_out_does_not_cost_others_their_connection(broker: OtherBroker) -> None:
    broker.settle(broker.create("first"))
    broker.node.network.cut("other", "node")
    impatient, patient = broker.create("t", timeout_ms=100), broker.create("u")
    broker.node.clock.run_for(200)
    assert impatient.value.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    broker.node.network.heal()
    assert broker.settle(patient).topics[0].error_code == ErrorCode.NONE


def test_a_heartbeat_has_one_attempt(broker: OtherBroker) -> None:
    request = BrokerHeartbeatRequest(broker_id=2, broker_epoch=5)
    assert broker.settle(broker.door.broker_heartbeat(request)).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    broker.replica.endpoint = None
    assert broker.settle(broker.door.broker_heartbeat(request)).error_code == ErrorCode.NETWORK_EXCEPTION
    broker.replica.endpoint = LeaderEndpoint(1, "node", CONTROLLER_PORT)
    broker.node.node.metadata.leader_changed(None, 99)
    assert broker.settle(broker.door.broker_heartbeat(request)).error_code == ErrorCode.NOT_CONTROLLER
    broker.node.network.cut("other", "node")
    started_ms = broker.now_ms
    assert broker.settle(broker.door.broker_heartbeat(request)).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert broker.now_ms - started_ms == pytest.approx(4_500, abs=1), "half a session"


def test_heartbeats_do_not_wait_behind_requests_of_clients(broker: OtherBroker) -> None:
    topics = [CreatableTopic(name=f"t{n}", num_partitions=1, replication_factor=1) for n in range(3_000)]
    slow = broker.door.create_topics(CreateTopicsRequest(topics=topics, timeout_ms=60_000), CLIENT)
    broker.node.clock.run_for(5)
    registered = broker.settle(broker.door.register_broker(BrokerRegistrationRequest(broker_id=2)))
    assert registered.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert not slow.done
    assert {each.error_code for each in broker.settle(slow).topics} == {ErrorCode.NONE}


def test_the_leader_itself_is_up_to_date(node: SimulatedNode) -> None:
    assert node.node.to_controller.when_up_to_date(1_000).value is True


def test_a_local_request_goes_elsewhere_when_the_term_ends_before_its_answer(node: SimulatedNode) -> None:
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    pending = node.node.to_controller.create_topics(CreateTopicsRequest(topics=[topic]), CLIENT)
    node.node.metadata.leader_changed(None, 98)
    node.clock.run_for(500)
    assert not pending.done
    node.node.metadata.leader_changed(node.node.node_id, 99)
    node.clock.run_until(lambda: pending.done)
    assert pending.value.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


@pytest.mark.parametrize("is_here", [True, False])
def test_a_change_of_voters_is_sent_again_when_its_leader_resigns(
    broker: OtherBroker, monkeypatch: pytest.MonkeyPatch, is_here: bool
) -> None:
    node = broker.node.node
    sent: list[Pending[Any]] = []

    def remove(_active: ActiveController, _request: RemoveRaftVoterRequest) -> Pending[Any]:
        sent.append(Pending())
        return sent[-1]

    monkeypatch.setattr(ActiveController, "remove_raft_voter", remove)
    door = node.to_controller if is_here else broker.door
    pending = door.remove_raft_voter(RemoveRaftVoterRequest(voter_id=3), replace(CLIENT, api_version=0))
    broker.node.clock.run_until(lambda: len(sent) == 1)
    sent[0].complete(RemoveRaftVoterResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    broker.node.clock.run_until(lambda: len(sent) == 2)
    sent[1].complete(RemoveRaftVoterResponse())
    assert broker.settle(pending).error_code == ErrorCode.NONE


def test_a_request_that_changes_places_keeps_the_deadline_of_its_client(
    node: SimulatedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t")], timeout_ms=3_000)
    here: Pending[Any] = Pending()
    monkeypatch.setattr(ActiveController, "create_topics", lambda active, request: here)
    started_ms = node.clock.monotonic_ms()
    pending = node.node.to_controller.create_topics(request, CLIENT)
    node.clock.run_for(2_000)
    node.node.metadata.leader_changed(None, 98)
    here.complete(refuse(request, not_controller()))
    node.clock.run_until(lambda: pending.done)
    assert pending.value.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert node.clock.monotonic_ms() - started_ms == pytest.approx(3_000, abs=1)

"""What a node logs when it refuses a request of another node: one line with the sender, the reason and what to do."""

import logging

import pytest

from quire.network.handler import CloseConnection
from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.node.context import Context, Principal
from quire.node.envelope import wrap
from quire.protocol import codec, uuids
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from quire.protocol.messages.begin_quorum_epoch import BeginQuorumEpochResponse
from quire.protocol.messages.broker_registration import BrokerRegistrationResponse
from quire.protocol.messages.create_topics import CreateTopicsRequest
from quire.protocol.messages.end_quorum_epoch import EndQuorumEpochResponse
from quire.protocol.messages.envelope import EnvelopeResponse
from quire.protocol.messages.fetch import FetchResponse
from quire.protocol.messages.fetch_snapshot import FetchSnapshotResponse
from quire.protocol.messages.headers import RequestHeader
from quire.protocol.messages.metadata import MetadataRequest
from quire.protocol.messages.vote import VoteRequest, VoteResponse
from quire.protocol.schema import Message
from quire.raft import messages
from quire.raft.control_state import NO_VOTERS
from quire.raft.log_summary import LogPosition
from quire.raft.messages import BeginEpoch, EndEpoch
from quire.raft.metadata_log import MetadataLog
from quire.raft.replicas import ReplicaKey
from quire.raft.wire import fetch, fetch_snapshot, quorum_epoch, vote
from quire.raft.wire.fetch_snapshot import SnapshotPartRequest
from quire.throttled_log import PERIOD_MS
from tests.node.api.denying import deny
from tests.node.api.other_nodes import (
    OTHER_ADDRESS,
    ask_controller,
    beat,
    controller_connection,
    lose_controller,
    register,
    registration,
)
from tests.node.conftest import SimulatedNode

OTHER = ReplicaKey(2, b"c" * 16)
START = messages.FetchRequest(1, OTHER, 0, 0, -1, 0)


def vote_of(
    node: SimulatedNode, epoch: int, *, voter: ReplicaKey | None = None, cluster_id: str | None = None
) -> VoteResponse:
    message = messages.VoteRequest(epoch, OTHER, LogPosition(0, 0), voter=voter)
    return ask_controller(node, vote.request(message, cluster_id or node.node.cluster_id), 2, VoteResponse)


def error_of(response: VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse) -> int:
    return response.error_code or response.topics[0].partitions[0].error_code


def the_line(caplog: pytest.LogCaptureFixture, *words: str) -> str:
    (line,) = [each for each in caplog.messages if each.startswith("refused")]
    for each in words:
        assert each in line
    return line


@pytest.fixture(autouse=True)
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "quire.requests")
    return caplog


def test_a_vote_of_an_old_epoch(node: SimulatedNode, logged: pytest.LogCaptureFixture) -> None:
    node.node.metadata.log.requested(messages.VoteRequest(9, OTHER, LogPosition(0, 0)))
    assert error_of(vote_of(node, 3)) == ErrorCode.FENCED_LEADER_EPOCH
    the_line(
        logged,
        f"refused Vote from node 2 at {OTHER_ADDRESS} with FENCED_LEADER_EPOCH: its epoch is 3, and this node is in",
    )


def test_a_pre_vote_of_an_old_epoch_is_part_of_every_start(
    node: SimulatedNode, logged: pytest.LogCaptureFixture
) -> None:
    message = messages.VoteRequest(0, node.node.metadata.log.key, LogPosition(0, 0), pre_vote=True)
    answer = ask_controller(node, vote.request(message, node.node.cluster_id), 2, VoteResponse)
    assert error_of(answer) == ErrorCode.FENCED_LEADER_EPOCH
    assert logged.messages == []


@pytest.mark.parametrize("voter", [ReplicaKey(1, b"x" * 16), ReplicaKey(8, b"x" * 16)])
def test_a_vote_for_another_directory_or_another_voter(
    node: SimulatedNode, logged: pytest.LogCaptureFixture, voter: ReplicaKey
) -> None:
    assert error_of(vote_of(node, 9, voter=voter)) == ErrorCode.INVALID_VOTER_KEY
    own = uuids.to_text(node.node.metadata.log.key.directory_id)
    the_line(logged, f"voter {voter.id} with directory {uuids.to_text(voter.directory_id)}", own, "quire quorum remove")


def test_a_vote_of_another_cluster(node: SimulatedNode, logged: pytest.LogCaptureFixture) -> None:
    assert error_of(vote_of(node, 9, cluster_id="other")) == ErrorCode.INCONSISTENT_CLUSTER_ID
    the_line(
        logged, f"node 2 at {OTHER_ADDRESS}", f"cluster {node.node.cluster_id}, not other", "correct the addresses"
    )


def test_a_vote_that_names_no_partition(node: SimulatedNode, logged: pytest.LogCaptureFixture) -> None:
    request = VoteRequest(cluster_id=node.node.cluster_id, topics=[])
    assert error_of(ask_controller(node, request, 2, VoteResponse)) == ErrorCode.INVALID_REQUEST
    the_line(
        logged, f"refused Vote from {OTHER_ADDRESS} with INVALID_REQUEST", "let only the nodes of this cluster reach"
    )


def test_a_leader_of_an_old_epoch_begins_and_ends_nothing(
    node: SimulatedNode, logged: pytest.LogCaptureFixture
) -> None:
    begin = quorum_epoch.begin_request(BeginEpoch(0, 2), node.node.cluster_id, ())
    end = quorum_epoch.end_request(EndEpoch(0, 2, ()), node.node.cluster_id, ())
    assert error_of(ask_controller(node, begin, 1, BeginQuorumEpochResponse)) == ErrorCode.FENCED_LEADER_EPOCH
    assert error_of(ask_controller(node, end, 1, EndQuorumEpochResponse)) == ErrorCode.FENCED_LEADER_EPOCH
    assert [line.split(" with ")[0] for line in logged.messages] == [
        f"refused BeginQuorumEpoch from node 2 at {OTHER_ADDRESS}",
        f"refused EndQuorumEpoch from node 2 at {OTHER_ADDRESS}",
    ]
    assert node.node.metadata.active is not None


@pytest.mark.parametrize(("epoch", "error"), [(0, "FENCED_LEADER_EPOCH"), (5, "UNKNOWN_LEADER_EPOCH")])
def test_fetches_of_the_metadata_log_in_another_epoch(
    node: SimulatedNode, logged: pytest.LogCaptureFixture, epoch: int, error: str
) -> None:
    request = fetch.request(START._replace(epoch=epoch), node.node.cluster_id)
    answer = ask_controller(node, request, 18, FetchResponse)
    assert answer.responses[0].partitions[0].error_code == ErrorCode[error]
    the_line(
        logged,
        f"refused Fetch from node 2 at {OTHER_ADDRESS} with {error}: its epoch is {epoch}, and this node is in epoch",
    )


def test_a_fetch_of_another_cluster(node: SimulatedNode, logged: pytest.LogCaptureFixture) -> None:
    answer = ask_controller(node, fetch.request(START, "other"), 18, FetchResponse)
    assert answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    the_line(logged, "refused Fetch from node 2", "not other")


def test_a_snapshot_of_an_old_epoch(node: SimulatedNode, logged: pytest.LogCaptureFixture) -> None:
    asked = SnapshotPartRequest(0, OTHER, LogPosition(1, 5), 0)
    answer = ask_controller(node, fetch_snapshot.request(asked, node.node.cluster_id), 1, FetchSnapshotResponse)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
    the_line(logged, "refused FetchSnapshot from node 2")


def test_a_voter_with_another_directory_is_named_once(node: SimulatedNode, logged: pytest.LogCaptureFixture) -> None:
    """It may have lost its disk with its votes. As in Kafka, it gets the log and counts as an observer."""
    key = node.node.metadata.log.key
    message = START._replace(replica=ReplicaKey(key.id, b"x" * 16))
    for _ in range(3):
        answer = ask_controller(node, fetch.request(message, node.node.cluster_id), 18, FetchResponse)
        assert fetch.answer(answer, message).batches
    (line,) = logged.messages
    assert f"node 1 at {OTHER_ADDRESS} has directory {uuids.to_text(b'x' * 16)}, and voter 1 has" in line
    assert "quire quorum remove" in line


def test_heartbeats_with_an_old_epoch_or_of_no_broker(node: SimulatedNode, logged: pytest.LogCaptureFixture) -> None:
    assert beat(node, 3).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    the_line(logged, f"refused BrokerHeartbeat from node 2 at {OTHER_ADDRESS}", "no broker 2 is registered")
    logged.clear()
    epoch = register(node)
    assert beat(node, epoch - 1).error_code == ErrorCode.STALE_BROKER_EPOCH
    the_line(logged, f"its broker epoch is {epoch - 1}, and the broker is registered with {epoch}")
    assert beat(node, epoch).error_code == ErrorCode.NONE


def test_producer_ids_for_an_old_registration(node: SimulatedNode, logged: pytest.LogCaptureFixture) -> None:
    epoch = register(node)
    request = AllocateProducerIdsRequest(broker_id=2, broker_epoch=epoch - 1)
    assert ask_controller(node, request, 0, AllocateProducerIdsResponse).error_code == ErrorCode.STALE_BROKER_EPOCH
    the_line(logged, "refused AllocateProducerIds from node 2", f"its broker epoch is {epoch - 1}")


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID, "this is a node of cluster"),
        (
            {"features": []},
            ErrorCode.UNSUPPORTED_VERSION,
            "it does not support the features of this cluster (eligible.",
        ),
        ({"incarnation_id": b"j" * 16}, ErrorCode.DUPLICATE_BROKER_REGISTRATION, "another process is broker 2"),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION, "it names no log directories"),
    ],
)
def test_registrations(
    node: SimulatedNode, logged: pytest.LogCaptureFixture, fields: dict[str, object], code: ErrorCode, words: str
) -> None:
    beat(node, register(node))
    refused = ask_controller(node, registration(node, **fields), 4, BrokerRegistrationResponse)
    assert refused.error_code == code
    the_line(logged, f"refused BrokerRegistration from node 2 at {OTHER_ADDRESS} with {code.name}: {words}")


def test_an_envelope_in_an_envelope(node: SimulatedNode, logged: pytest.LogCaptureFixture) -> None:
    client = Context("PLAINTEXT", Principal("User", "alice"), "app", "10.1.2.3:4000", api_version=6)
    outer = wrap(client, CreateTopicsRequest())
    header = RequestHeader(request_api_key=outer.API_KEY, request_api_version=0, client_id="app")
    outer.request_data = codec.encode(header, 2) + codec.encode(wrap(client, CreateTopicsRequest()), 0)
    assert ask_controller(node, outer, 0, EnvelopeResponse).error_code == ErrorCode.INVALID_REQUEST
    the_line(
        logged,
        f"refused Envelope from {OTHER_ADDRESS} with INVALID_REQUEST: Envelope is not a request that brokers pass",
    )


def test_a_client_that_is_not_a_node(node: SimulatedNode, logged: pytest.LogCaptureFixture) -> None:
    deny(node, (AclOperation.CLUSTER_ACTION, CLUSTER_NAME))
    assert error_of(vote_of(node, 9)) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    the_line(logged, "allow its principal ClusterAction")


def test_a_controller_that_is_not_active_sends_the_broker_on_without_a_line(
    node: SimulatedNode, logged: pytest.LogCaptureFixture
) -> None:
    epoch = register(node)
    lose_controller(node)
    assert beat(node, epoch).error_code == ErrorCode.NOT_CONTROLLER
    assert logged.messages == []


def test_a_peer_that_repeats_itself_does_not_fill_the_log(
    node: SimulatedNode, logged: pytest.LogCaptureFixture
) -> None:
    for _ in range(100):
        vote_of(node, 9, cluster_id="x" * 30_000)
    assert len(logged.messages) == 1
    assert max(map(len, logged.messages)) < 1000
    node.clock.run_for(PERIOD_MS)
    assert "more lines like this were left out" in logged.messages[1]
    assert len(logged.messages) == 2


@pytest.mark.parametrize(("request_", "version"), [(VoteRequest(), 2), (AllocateProducerIdsRequest(), 0)])
def test_requests_between_nodes_on_a_listener_for_clients_close_the_connection(
    node: SimulatedNode, request_: Message, version: int
) -> None:
    """As in Kafka, where a listener without the API closes the connection. The server logs the reason."""
    with pytest.raises(CloseConnection, match=r"a request between nodes, and not served on PLAINTEXT, .* send it to a"):
        node.send(request_, version)


def test_requests_to_brokers_on_a_controller_listener_close_the_connection(node: SimulatedNode) -> None:
    node.info = controller_connection()
    with pytest.raises(
        CloseConnection, match=r"Metadata is not served on CONTROLLER, .* connect to a listener of a bro"
    ):
        node.send(MetadataRequest(topics=[]), 12)


def test_a_candidate_that_is_not_a_voter_may_get_a_vote_and_is_named(
    node: SimulatedNode, logged: pytest.LogCaptureFixture
) -> None:
    """As in Kafka since KIP-853: the candidate's voters may be newer than this node's."""
    log = node.node.metadata.log
    message = messages.VoteRequest(9, OTHER, LogPosition(8, log.next_offset + 1))
    answer = ask_controller(node, vote.request(message, node.node.cluster_id), 2, VoteResponse)
    assert (error_of(answer), answer.topics[0].partitions[0].vote_granted) == (ErrorCode.NONE, True)
    assert logged.messages[0].startswith(f"node 2 at {OTHER_ADDRESS} asks for votes, and is not a voter as far as")


def test_a_candidate_is_no_stranger_to_a_node_that_knows_no_voters_yet(
    node: SimulatedNode, logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MetadataLog, "voters", NO_VOTERS)
    node.node.refusals.candidate(OTHER, OTHER_ADDRESS)
    assert logged.messages == []

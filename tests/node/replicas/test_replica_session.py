"""Sessions of followers, as their fetches open, continue and lose them."""

import pytest

from quire.node.replicas.replica_session import SESSIONS_OF_A_BROKER
from quire.pending import Pending
from quire.protocol import codec
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from quire.protocol.messages.produce import ProduceResponse
from quire.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from quire.replication.members import Members
from tests.node.api.other_nodes import OTHER_ID, ask_controller, beat, register
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import produce_request

VERSION = 17


@pytest.fixture
def leader(node: SimulatedNode) -> SimulatedNode:
    """Leads partition 0 of topic t, which broker 2 follows."""
    node.create_topic("t")
    beat(node, register(node))
    node.node.partitions.leader("t", None, 0).followers.change_members(Members((1, OTHER_ID), (1,), 1))
    return node


def epoch_of(node: SimulatedNode) -> int:
    return node.node.image.brokers[OTHER_ID].epoch


def request(
    node: SimulatedNode, session_id: int = 0, epoch: int = 0, *, broker_epoch: int | None = None, wait_ms: int = 0
) -> FetchRequest:
    """The first fetch of a session names the partition."""
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000, current_leader_epoch=0)
    topic = FetchTopic(topic_id=node.node.image.topics_by_name["t"].topic_id, partitions=[wanted])
    return FetchRequest(
        replica_state=ReplicaState(
            replica_id=OTHER_ID, replica_epoch=epoch_of(node) if broker_epoch is None else broker_epoch
        ),
        max_bytes=1000,
        max_wait_ms=wait_ms,
        session_id=session_id,
        session_epoch=epoch,
        topics=[] if epoch else [topic],
    )


def fetched(node: SimulatedNode, wanted: FetchRequest) -> FetchResponse:
    return node.call(wanted, VERSION, FetchResponse)


def waiting(node: SimulatedNode, session_id: int, epoch: int) -> Pending[bytes | None]:
    """A fetch that has nothing to read, and waits for a long time."""
    answer = node.send(request(node, session_id, epoch, wait_ms=30_000), VERSION)
    node.clock.run_for(100)
    assert not answer.done
    return answer


def opened(node: SimulatedNode) -> int:
    """The id of a session whose follower has everything, and knows the current high watermark."""
    first = request(node)
    first.topics[0].partitions[0].fetch_offset = node.node.partitions.leader("t", None, 0).log.end_offset
    session_id = fetched(node, first).session_id
    assert session_id and not fetched(node, request(node, session_id, 1)).responses
    return session_id


def session_of(answer: Pending[bytes | None]) -> int:
    assert answer.done and answer.value is not None
    return codec.decode(FetchResponse, answer.value[5:], VERSION).session_id


def test_a_fetch_that_waits_is_answered_when_its_session_is_closed(leader: SimulatedNode) -> None:
    """The follower sends the next one after the answer: it would wait for its socket timeout."""
    answer = waiting(leader, opened(leader), 2)
    ask_controller(leader, UnregisterBrokerRequest(broker_id=OTHER_ID), 0, UnregisterBrokerResponse)
    leader.clock.run_for(10)
    assert session_of(answer) == 0, "the session is gone"


def test_a_fetch_that_claims_a_registration_does_not_close_the_sessions_of_the_broker(leader: SimulatedNode) -> None:
    session_id = opened(leader)
    answer = waiting(leader, session_id, 2)
    fetched(leader, request(leader, broker_epoch=2**62))
    leader.clock.run_for(100)
    assert not answer.done
    assert leader.node.replicas.sessions.of_fetch(request(leader, session_id, 3), OTHER_ID, epoch_of(leader))


def test_the_session_that_has_not_fetched_for_longest_makes_room(leader: SimulatedNode) -> None:
    first, second = opened(leader), opened(leader)
    assert fetched(leader, request(leader, first, 2)).session_id == first
    for _ in range(SESSIONS_OF_A_BROKER - 1):
        opened(leader)
    assert fetched(leader, request(leader, first, 3)).session_id == first
    assert fetched(leader, request(leader, second, 2)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_broker_that_has_registered_again_begins_another_session(leader: SimulatedNode) -> None:
    """Under the new registration it has named no partition yet, and none could join an ISR that does not change."""
    session_id = opened(leader)
    later = epoch_of(leader) + 1
    lost = fetched(leader, request(leader, session_id, 2, broker_epoch=later))
    assert lost.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_of_an_earlier_registration_ends(leader: SimulatedNode) -> None:
    answer = waiting(leader, opened(leader), 2)
    beat(leader, epoch_of(leader), want_fence=True)
    leader.clock.run_for(20_000)  # until its session at the controller has ended
    again = waiting(leader, session_of(answer), 3) if answer.done else answer
    register(leader, incarnation_id=b"j" * 16)
    leader.clock.run_for(10)
    assert session_of(again) == 0


def test_the_high_watermark_is_sent_again_to_a_follower_of_another_leader_epoch(leader: SimulatedNode) -> None:
    """It has ignored the answer if it learned of the new epoch before the answer arrived."""
    leader.call(produce_request("t"), 9, ProduceResponse)
    session_id = opened(leader)
    leader.node.partitions.leader("t", None, 0).partition.become_leader(1, Members((1, OTHER_ID), (1,), 2))
    later = request(leader)
    later.session_id, later.session_epoch = session_id, 2
    later.topics[0].partitions[0].current_leader_epoch = 1
    later.topics[0].partitions[0].fetch_offset = 1
    ((part,),) = [topic.partitions for topic in fetched(leader, later).responses]
    assert (part.error_code, part.high_watermark, part.records) == (ErrorCode.NONE, 1, b"")


def test_only_its_own_broker_can_end_a_session(leader: SimulatedNode) -> None:
    session_id = opened(leader)
    other = request(leader, session_id, 0)
    other.replica_state.replica_id = 9
    fetched(leader, other)
    assert fetched(leader, request(leader, session_id, 2)).session_id == session_id


def test_a_closed_session_follows_no_leader(leader: SimulatedNode) -> None:
    session_id = opened(leader)
    role = leader.node.partitions.leader("t", None, 0)
    (session,) = role.replica_readers
    leader.node.replicas.sessions.close(session_id)
    (followed,) = session.partitions.values()  # type: ignore[attr-defined]
    followed.leader = None
    session.follow(role, followed)  # type: ignore[attr-defined]
    assert not role.replica_readers

"""Members that send LeaveGroup after a waiting request and disconnect at once: the LeaveGroup counts."""

from quire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from quire.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from quire.protocol.schema import Message
from quire.testing import WireConnection
from quire.testing.wire_connection import request_frame
from tests.wire.clients import eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.raw import NAMES_UP_TO, fetch_request
from tests.wire.raw_consumer_groups import LEAVES, NEWEST, RawConsumer, describe_consumer_group
from tests.wire.raw_groups import LEAVE_NEWEST, stable_alone, state_of
from tests.wire.test_group_configs import SESSION, alter, value_of

SESSION_MS = 60_000
"""Longer than any wait in these tests: a member that is removed earlier has sent its leave request."""
FETCH_MS = 1000


def say_and_hang_up(bootstrap: str, *requests: tuple[Message, int]) -> None:
    with WireConnection(bootstrap) as last:
        last.send_bytes(b"".join(request_frame(request, version, 1) for request, version in requests))


def test_a_member_of_a_consumer_group_leaves(
    bootstrap: str, connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    alter(connection, group, (SESSION, str(SESSION_MS)))
    eventually(lambda: value_of(connection, group, SESSION)[0] == str(SESSION_MS))
    member = RawConsumer(connection, group, topic)
    member.join()
    waits = fetch_request(topic, 0, max_wait_ms=FETCH_MS, min_bytes=1)
    leaves = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member.member_id, member_epoch=LEAVES)
    say_and_hang_up(bootstrap, (waits, NAMES_UP_TO), (leaves, NEWEST))
    eventually(lambda: describe_consumer_group(connection, group).group_state == "Empty")


def test_a_member_of_a_classic_group_leaves(
    bootstrap: str, connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    joined = stable_alone(connection, group, session_timeout_ms=SESSION_MS)
    waits = fetch_request(topic, 0, max_wait_ms=FETCH_MS, min_bytes=1)
    leaves = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=joined.member_id)])
    say_and_hang_up(bootstrap, (waits, NAMES_UP_TO), (leaves, LEAVE_NEWEST))
    eventually(lambda: state_of(connection, group) == "Empty")

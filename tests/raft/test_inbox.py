"""Requests of other replicas wait for the machine's answer, each under its own number."""

from quire.protocol.errors import ApiError, ErrorCode
from quire.raft.inbox import Inbox
from quire.raft.messages import EpochAnswer

ANSWER = EpochAnswer(1, 2)


def test_two_requests_of_one_replica_get_their_own_answers() -> None:
    inbox = Inbox()
    first, first_reply = inbox.add()
    second, second_reply = inbox.add()
    inbox.answer(second, ANSWER)
    assert (first_reply.done, second_reply.value) == (False, ANSWER)
    assert inbox.holds(first) and not inbox.holds(3)


def test_the_response_to_a_disconnected_client_is_dropped() -> None:
    inbox = Inbox()
    number, reply = inbox.add()
    reply.abandon()
    assert len(inbox) == 0
    inbox.answer(number, ANSWER)


def test_messages_that_wait_at_the_end_are_refused() -> None:
    inbox = Inbox()
    _, reply = inbox.add()
    error = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "stopping")
    inbox.refuse_all(error)
    assert reply.value is error and len(inbox) == 0

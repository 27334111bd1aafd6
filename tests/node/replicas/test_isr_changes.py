"""How changes of ISRs reach the controller, and what its answers do."""

from collections.abc import Callable
from functools import partial

import pytest

from quire.node.replicas import Replicas, isr_changes
from quire.node.replicas.isr_changes import RETRY_MS
from quire.node.to_controller import ToController
from quire.pending import Pending
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from quire.replication.followers import Followers
from quire.replication.members import Members
from tests.node.conftest import SimulatedNode

OTHERS = (2, 3)


class Controller:
    """Keeps requests, and answers them when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[AlterPartitionRequest, Pending[AlterPartitionResponse]]] = []
        monkeypatch.setattr(ToController, "alter_partition", lambda _, request: self._ask(request))

    def _ask(self, request: AlterPartitionRequest) -> Pending[AlterPartitionResponse]:
        self.asked.append((request, Pending()))
        return self.asked[-1][1]

    def answer(self, *, error: ErrorCode = ErrorCode.NONE, partition_epoch: int = 1, isr: tuple[int, ...] = ()) -> None:
        request, pending = self.asked.pop(0)
        topics = [
            AlterPartitionResponseTopicData(
                topic_id=topic.topic_id,
                partitions=[
                    AlterPartitionResponsePartitionData(
                        partition_index=wanted.partition_index,
                        error_code=error,
                        leader_id=1,
                        leader_epoch=wanted.leader_epoch,
                        isr=list(isr) or [each.broker_id for each in wanted.new_isr_with_epochs],
                        partition_epoch=partition_epoch,
                    )
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        pending.complete(AlterPartitionResponse(topics=topics))

    def fail(self, error: ErrorCode) -> None:
        self.asked.pop(0)[1].complete(AlterPartitionResponse(error_code=error))


Leading = Callable[[int], tuple[SimulatedNode, Controller, list[Followers]]]


@pytest.fixture
def leading(monkeypatch: pytest.MonkeyPatch) -> Leading:
    return partial(_leading, monkeypatch)


def _leading(monkeypatch: pytest.MonkeyPatch, partitions: int) -> tuple[SimulatedNode, Controller, list[Followers]]:
    """A node that leads partitions with two followers, which are not in sync."""
    node = SimulatedNode().start()
    node.create_topic("t", partitions=partitions)
    controller = Controller(monkeypatch)
    monkeypatch.setattr(Replicas, "may_join_isr", lambda *_: True)
    followers = [node.node.partitions.leader("t", None, index).followers for index in range(partitions)]
    for each in followers:
        each.change_members(Members((1, *OTHERS), (1,), 0))
    return node, controller, followers


def named(request: AlterPartitionRequest) -> list[tuple[int, list[tuple[int, int]]]]:
    return [
        (wanted.partition_index, [(each.broker_id, each.broker_epoch) for each in wanted.new_isr_with_epochs])
        for topic in request.topics
        for wanted in topic.partitions
    ]


def test_changes_of_one_turn_share_a_request_with_the_broker_epochs_of_the_members(leading: Leading) -> None:
    node, controller, followers = leading(2)
    for each in followers:
        each.fetched(2, 77, 0, 0)
    node.clock.run_for(1)
    ((request, _),) = controller.asked
    assert node.node.broker is not None
    own = node.node.broker.epoch
    assert (request.broker_id, request.broker_epoch) == (1, own)
    assert named(request) == [(0, [(1, own), (2, 77)]), (1, [(1, own), (2, 77)])]


def test_what_is_wanted_meanwhile_is_sent_after_the_answer(leading: Leading) -> None:
    node, controller, (first, second) = leading(2)
    first.fetched(2, 77, 0, 0)
    node.clock.run_for(1)
    second.fetched(2, 77, 0, 0)
    node.clock.run_for(1_000)
    assert len(controller.asked) == 1
    controller.answer()
    node.clock.run_for(1)
    assert [index for index, _ in named(controller.asked[0][0])] == [1]


def test_a_change_that_was_not_decided_is_sent_again(leading: Leading) -> None:
    node, controller, (followers,) = leading(1)
    followers.fetched(2, 77, 0, 0)
    node.clock.run_for(1)
    controller.fail(ErrorCode.NOT_CONTROLLER)
    assert followers.in_sync.maximal == (1, 2)
    node.clock.run_for(RETRY_MS - 2)
    assert not controller.asked
    node.clock.run_for(4)
    assert named(controller.asked[0][0])[0][0] == 0


def test_a_change_that_the_metadata_has_overtaken_is_not_sent_again(leading: Leading) -> None:
    node, controller, (followers,) = leading(1)
    followers.fetched(2, 77, 0, 0)
    node.clock.run_for(1)
    controller.fail(ErrorCode.NETWORK_EXCEPTION)
    followers.change_members(Members((1, *OTHERS), (1, 2), 1))
    node.clock.run_for(1_000)
    assert not controller.asked


def test_only_the_metadata_says_that_a_change_is_committed(leading: Leading) -> None:
    """The metadata also has the settings with which the change was decided."""
    node, controller, (followers,) = leading(1)
    followers.fetched(2, 77, 0, 0)
    node.clock.run_for(1)
    controller.answer()
    assert (followers.in_sync.committed, followers.in_sync.maximal) == ((1,), (1, 2))
    followers.change_members(Members((1, *OTHERS), (1, 2), 1))
    assert followers.in_sync.committed == (1, 2)


def test_a_change_that_was_none_is_withdrawn(leading: Leading) -> None:
    node, controller, (followers,) = leading(1)
    followers.fetched(2, 77, 0, 0)
    node.clock.run_for(1)
    controller.answer(partition_epoch=0)
    assert followers.in_sync.proposed is None


def test_an_ineligible_replica_does_not_count(leading: Leading) -> None:
    node, controller, (followers,) = leading(1)
    followers.fetched(2, 77, 0, 0)
    node.clock.run_for(1)
    controller.answer(error=ErrorCode.INELIGIBLE_REPLICA)
    assert followers.in_sync.maximal == (1,)


@pytest.mark.parametrize("error", [ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT])
def test_a_refused_replica_counts_while_an_earlier_request_has_no_answer(
    leading: Leading, error: ErrorCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That request may reach the controller when the replica is eligible again."""
    node, controller, (followers,) = leading(1)
    followers.fetched(2, 77, 0, 0)
    node.clock.run_for(1)
    controller.fail(error)
    for _ in range(3):
        node.clock.run_for(RETRY_MS + 2)
        controller.answer(error=ErrorCode.INELIGIBLE_REPLICA)
        assert followers.in_sync.maximal == (1, 2)
    monkeypatch.setattr(Replicas, "may_join_isr", lambda *_: False)
    followers.change_members(Members((1, *OTHERS), (1,), 1))
    assert followers.in_sync.maximal == (1,), "the controller refuses what was asked for in another partition epoch"


def test_a_replica_that_a_controller_refused_at_the_end_of_its_term_does_not_count(leading: Leading) -> None:
    node, controller, (followers,) = leading(1)
    followers.fetched(2, 77, 0, 0)
    node.clock.run_for(1)
    controller.fail(ErrorCode.NOT_CONTROLLER)
    node.clock.run_for(RETRY_MS + 2)
    controller.answer(error=ErrorCode.INELIGIBLE_REPLICA)
    assert followers.in_sync.maximal == (1,)


def test_after_an_error_that_says_nothing_about_the_change_the_larger_set_counts(leading: Leading) -> None:
    node, controller, (followers,) = leading(1)
    followers.fetched(2, 77, 0, 0)
    node.clock.run_for(1)
    controller.answer(error=ErrorCode.INVALID_UPDATE_VERSION)
    node.clock.run_for(1_000)
    assert not controller.asked, "the metadata will say what is true"
    assert followers.in_sync.maximal == (1, 2)
    followers.change_members(Members((1, *OTHERS), (1, 3), 2))
    assert followers.in_sync.committed == (1, 3)
    assert followers.in_sync.proposed == (1, 3, 2), "it has caught up, so it is proposed again"


@pytest.mark.parametrize("error", [ErrorCode.NOT_CONTROLLER, ErrorCode.KAFKA_STORAGE_ERROR])
def test_after_any_other_error_the_change_is_sent_again(leading: Leading, error: ErrorCode) -> None:
    node, controller, (followers,) = leading(1)
    followers.fetched(2, 77, 0, 0)
    node.clock.run_for(1)
    controller.answer(error=error)
    node.clock.run_for(RETRY_MS + 2)
    assert len(controller.asked) == 1


def test_changes_behind_many_that_were_overtaken_are_sent(leading: Leading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isr_changes, "MOST_CHANGES", 2)
    node, controller, followers = leading(3)
    for each in followers:
        each.fetched(2, 77, 0, 0)
    for each in followers[:2]:
        each.change_members(Members((1, *OTHERS), (1, 2, 3), 1))
    node.clock.run_for(10)
    assert [index for index, _ in named(controller.asked[0][0])] == [2]


def test_a_leadership_that_has_ended_ignores_the_answer(leading: Leading) -> None:
    node, controller, (followers,) = leading(1)
    followers.fetched(2, 77, 0, 0)
    node.clock.run_for(1)
    node.node.partitions.leader("t", None, 0).partition.become_follower(2, 9)
    controller.answer()
    assert followers.in_sync.committed == (1,)

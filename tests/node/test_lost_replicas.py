"""A broker reports the replicas that it has lost, to a controller that the test controls."""

from types import SimpleNamespace
from typing import cast

import pytest

from quire.metadata.partition_image import LOST_DIRECTORY
from quire.node import lost_replicas
from quire.node.broker_lifecycle import RETRY_MS, BrokerLifecycle
from quire.node.lost_replicas import LostReplicas
from quire.node.to_controller import ToController
from quire.pending import Pending
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from simulator.clock import SimClock

A, B = b"a" * 16, b"b" * 16


class Controller:
    def __init__(self) -> None:
        self.requests: list[AssignReplicasToDirsRequest] = []
        self._answer: Pending[AssignReplicasToDirsResponse] = Pending()

    def assign_replicas_to_dirs(self, request: AssignReplicasToDirsRequest) -> Pending[AssignReplicasToDirsResponse]:
        self.requests.append(request)
        self._answer = Pending()
        return self._answer

    def answers(self, code: ErrorCode = ErrorCode.NONE) -> None:
        self._answer.complete(AssignReplicasToDirsResponse(error_code=code))

    @property
    def reported(self) -> list[tuple[bytes, list[int]]]:
        """The topics and indexes of the last request."""
        (directory,) = self.requests[-1].directories
        assert directory.id == LOST_DIRECTORY
        return [(topic.topic_id, [each.partition_index for each in topic.partitions]) for topic in directory.topics]


class World:
    def __init__(self, *lost: tuple[bytes, int]) -> None:
        self.clock = SimClock()
        self.controller = Controller()
        self.broker = SimpleNamespace(epoch=7, has_ended=False)
        controller, broker = cast(ToController, self.controller), cast(BrokerLifecycle, self.broker)
        self.done = LostReplicas(controller, broker, 1, lost, clock=self.clock).report()


def test_nothing_is_sent_if_nothing_is_lost() -> None:
    world = World()
    assert world.done.done
    assert world.controller.requests == []


def test_it_is_done_when_the_controller_has_answered() -> None:
    world = World((A, 0), (B, 3), (A, 2))
    assert world.controller.reported == [(A, [0, 2]), (B, [3])]
    assert not world.done.done
    world.controller.answers()
    assert world.done.done


def test_many_are_reported_in_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_replicas, "MOST_REPLICAS", 2)
    world = World((A, 0), (A, 1), (A, 2))
    world.controller.answers()
    assert world.controller.reported == [(A, [2])]
    assert not world.done.done
    world.controller.answers()
    assert world.done.done


def test_what_is_refused_or_lost_is_sent_again_with_the_epoch_of_then() -> None:
    world = World((A, 0))
    world.controller.answers(ErrorCode.STALE_BROKER_EPOCH)
    world.broker.epoch = 8
    world.clock.run_for(RETRY_MS)
    assert [each.broker_epoch for each in world.controller.requests] == [7, 8]
    world.controller.answers()
    assert world.done.done


def test_a_broker_that_has_ended_reports_nothing_more() -> None:
    world = World((A, 0))
    world.controller.answers(ErrorCode.NOT_CONTROLLER)
    world.broker.has_ended = True
    world.clock.run_for(10 * RETRY_MS)
    assert len(world.controller.requests) == 1
    assert not world.done.done

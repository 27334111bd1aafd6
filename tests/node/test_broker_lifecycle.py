"""A broker's registration, heartbeats and controlled shutdown, against a controller that the test controls."""

from typing import cast

import pytest

from quire.node.broker_lifecycle import (
    LEAVE_PATIENCE_MS,
    NO_CONTROLLER_PATIENCE_MS,
    NO_EPOCH,
    RETRY_MS,
    BrokerLifecycle,
)
from quire.node.to_controller import ToController
from quire.pending import Pending
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quire.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from simulator.clock import SimClock

INTERVAL_MS = 2_000


class Controller:
    """Keeps the requests, each with the pending response."""

    def __init__(self) -> None:
        self.registrations: list[Pending[BrokerRegistrationResponse]] = []
        self.heartbeats: list[tuple[BrokerHeartbeatRequest, Pending[BrokerHeartbeatResponse]]] = []

    def register_broker(self, _request: BrokerRegistrationRequest) -> Pending[BrokerRegistrationResponse]:
        self.registrations.append(Pending())
        return self.registrations[-1]

    def broker_heartbeat(self, request: BrokerHeartbeatRequest) -> Pending[BrokerHeartbeatResponse]:
        self.heartbeats.append((request, Pending()))
        return self.heartbeats[-1][1]

    def registers(self, epoch: int) -> None:
        self.registrations[-1].complete(BrokerRegistrationResponse(broker_epoch=epoch))

    def answers(self, **fields: object) -> None:
        response = BrokerHeartbeatResponse()
        for name, value in fields.items():
            setattr(response, name, value)
        self.heartbeats[-1][1].complete(response)

    @property
    def last(self) -> BrokerHeartbeatRequest:
        return self.heartbeats[-1][0]


class World:
    def __init__(self) -> None:
        self.clock = SimClock()
        self.controller = Controller()
        self.events: list[str] = []
        self.applied = -1
        self.broker = BrokerLifecycle(
            cast(ToController, self.controller),
            self.clock,
            BrokerRegistrationRequest(broker_id=1),
            heartbeat_interval_ms=INTERVAL_MS,
            applied_offset=lambda: self.applied,
            failed_directories=list,
            registered=lambda epoch: self.events.append(f"registered {epoch}"),
            unfenced=lambda: self.events.append("unfenced"),
            failed=lambda reason: self.events.append(reason),
        )

    def unfence(self) -> None:
        self.broker.start()
        self.controller.registers(5)
        self.controller.answers(is_fenced=False)


@pytest.fixture
def world() -> World:
    return World()


def test_a_broker_registers_then_sends_heartbeats_until_it_is_unfenced(world: World) -> None:
    world.broker.start()
    assert world.broker.epoch == NO_EPOCH
    world.controller.registers(5)
    assert world.events == ["registered 5"]
    assert (world.controller.last.broker_epoch, world.controller.last.current_metadata_offset) == (5, -1)
    world.controller.answers(is_fenced=True)
    world.applied = 5
    world.clock.run_for(RETRY_MS)
    assert world.controller.last.current_metadata_offset == 5
    world.controller.answers(is_fenced=False)
    assert world.events == ["registered 5", "unfenced"]


def test_an_unfenced_broker_sends_a_heartbeat_at_each_interval(world: World) -> None:
    world.unfence()
    for count in (2, 3, 4):
        world.clock.run_for(INTERVAL_MS)
        assert len(world.controller.heartbeats) == count
        world.controller.answers(is_fenced=False)
    assert world.events == ["registered 5", "unfenced"], "each is reported once"


def test_a_refused_registration_is_tried_again(world: World) -> None:
    world.broker.start()
    refused = BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    world.controller.registrations[-1].complete(refused)
    assert world.events == []
    world.clock.run_for(RETRY_MS)
    assert len(world.controller.registrations) == 2
    world.controller.registers(7)
    assert world.events == ["registered 7"]


def test_a_broker_of_another_cluster_gives_up(world: World) -> None:
    world.broker.start()
    refused = BrokerRegistrationResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    world.controller.registrations[-1].complete(refused)
    assert len(world.events) == 1 and "another cluster" in world.events[0]
    world.clock.run_for(60_000)
    assert len(world.controller.registrations) == 1


def test_each_reason_for_a_refusal_is_logged_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.broker.start()
    for _ in range(5):
        refused = BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
        world.controller.registrations[-1].complete(refused)
        world.clock.run_for(RETRY_MS)
    assert len([record for record in caplog.records if "same node.id" in record.getMessage()]) == 1


def test_a_stale_epoch_makes_the_broker_register_again(world: World) -> None:
    world.unfence()
    world.clock.run_for(INTERVAL_MS)
    world.controller.answers(error_code=ErrorCode.STALE_BROKER_EPOCH)
    world.clock.run_for(RETRY_MS)
    world.controller.registers(9)
    assert world.broker.epoch == world.controller.last.broker_epoch == 9
    assert world.events == ["registered 5", "unfenced", "registered 9"]


def test_a_broker_that_was_unregistered_registers_again(world: World) -> None:
    world.unfence()
    world.clock.run_for(INTERVAL_MS)
    world.controller.answers(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED)
    world.clock.run_for(RETRY_MS)
    assert len(world.controller.registrations) == 2


@pytest.mark.parametrize("code", [ErrorCode.NOT_CONTROLLER, ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT])
def test_a_heartbeat_that_reaches_no_controller_is_sent_again_soon(world: World, code: ErrorCode) -> None:
    world.broker.start()
    world.controller.registers(5)
    world.controller.answers(error_code=code, is_fenced=False)
    assert world.events == ["registered 5"], "an error says nothing about fencing"
    world.clock.run_for(RETRY_MS)
    assert len(world.controller.heartbeats) == 2
    world.controller.answers(is_fenced=False)
    assert world.events == ["registered 5", "unfenced"]


def test_a_fenced_broker_does_not_wait_for_the_next_interval(world: World) -> None:
    world.unfence()
    world.clock.run_for(INTERVAL_MS)
    world.controller.answers(is_fenced=True)
    world.clock.run_for(RETRY_MS)
    assert len(world.controller.heartbeats) == 3


@pytest.mark.parametrize(
    "code", [ErrorCode.NOT_CONTROLLER, ErrorCode.NETWORK_EXCEPTION, ErrorCode.UNKNOWN_SERVER_ERROR]
)
def test_an_error_while_leaving_does_not_end_the_controlled_shutdown(world: World, code: ErrorCode) -> None:
    world.unfence()
    world.broker.leave(lambda: world.events.append("left"))
    world.controller.answers(error_code=code)
    assert "left" not in world.events
    world.clock.run_for(RETRY_MS)
    assert world.controller.last.want_shut_down
    world.controller.answers(should_shut_down=True)
    assert world.events[-1] == "left"


def test_a_broker_that_finds_no_controller_for_longer_than_an_election_leaves(world: World) -> None:
    world.unfence()
    world.broker.leave(lambda: world.events.append("left"))
    started_ms = world.clock.monotonic_ms()
    while "left" not in world.events:
        world.controller.answers(error_code=ErrorCode.NETWORK_EXCEPTION)
        world.clock.run_for(RETRY_MS)
    assert world.clock.monotonic_ms() - started_ms <= NO_CONTROLLER_PATIENCE_MS + 2 * RETRY_MS
    assert world.clock.monotonic_ms() - started_ms >= NO_CONTROLLER_PATIENCE_MS


@pytest.mark.parametrize("code", [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED])
def test_a_broker_without_a_registration_has_nothing_to_leave(world: World, code: ErrorCode) -> None:
    world.unfence()
    world.broker.leave(lambda: world.events.append("left"))
    world.controller.answers(error_code=code)
    assert world.events[-1] == "left"


def test_a_controlled_shutdown_ends_when_the_controller_says_so(world: World) -> None:
    world.unfence()
    world.broker.leave(lambda: world.events.append("left"))
    assert world.controller.last.want_shut_down
    world.controller.answers(should_shut_down=False)
    world.clock.run_for(RETRY_MS)
    assert "left" not in world.events
    world.controller.answers(should_shut_down=True)
    assert world.events[-1] == "left"
    count = len(world.controller.heartbeats)
    world.clock.run_for(10 * INTERVAL_MS)
    assert len(world.controller.heartbeats) == count, "a broker that has left is silent"


def test_a_controller_that_does_not_answer_cannot_delay_a_stop(world: World) -> None:
    world.unfence()
    world.broker.leave(lambda: world.events.append("left"))
    world.clock.run_for(LEAVE_PATIENCE_MS - 1)
    assert "left" not in world.events
    world.clock.run_for(1)
    assert world.events[-1] == "left"


def test_a_broker_that_was_never_registered_leaves_at_once(world: World) -> None:
    world.broker.leave(lambda: world.events.append("left"))
    assert world.events == ["left"]
    assert world.controller.heartbeats == []


def test_a_new_active_controller_gets_a_heartbeat_at_once(world: World) -> None:
    world.unfence()
    count = len(world.controller.heartbeats)
    world.broker.controller_changed()
    assert len(world.controller.heartbeats) == count + 1
    world.broker.controller_changed()
    assert len(world.controller.heartbeats) == count + 1, "one is on its way"
    world.controller.answers(is_fenced=False)
    world.clock.run_for(INTERVAL_MS - 1)
    assert len(world.controller.heartbeats) == count + 1
    world.clock.run_for(1)
    assert len(world.controller.heartbeats) == count + 2


def test_a_broker_that_has_left_tells_a_new_controller_nothing(world: World) -> None:
    world.unfence()
    world.broker.end()
    count = len(world.controller.heartbeats)
    world.broker.controller_changed()
    assert len(world.controller.heartbeats) == count


def test_a_broker_leaves_at_once_when_the_whole_cluster_stops(world: World) -> None:
    world.unfence()
    world.broker.leave_without_controller()  # it is not stopping, so nothing happens
    world.broker.leave(lambda: world.events.append("left"))
    assert "left" not in world.events
    world.broker.leave_without_controller()
    world.broker.leave_without_controller()
    assert world.events.count("left") == 1

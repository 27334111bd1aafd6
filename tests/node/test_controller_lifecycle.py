"""A controller registers with each active controller until its registration is in the image."""

from collections.abc import Callable
from typing import cast

import pytest

from quire.controller.metadata_replica import MetadataReplica
from quire.metadata.features import METADATA_VERSION
from quire.metadata.image import ClusterImage, ControllerImage
from quire.metadata.loader import MetadataLoader
from quire.node.controller_lifecycle import ControllerLifecycle
from quire.node.to_controller import ToController
from quire.pending import Pending
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from quire.protocol.messages.metadata_records import FeatureLevelRecord, RegisterControllerRecord
from quire.raft.log_store import CommittedBatch
from simulator.clock import SimClock
from simulator.random import SimRandom

REQUEST = ControllerRegistrationRequest(controller_id=2, incarnation_id=b"i" * 16)


class World:
    """Stand-ins for the metadata replica and `ToController`, with what a controller's registration needs."""

    def __init__(self, metadata_version: int = 30) -> None:
        self.clock = SimClock()
        self.loader = MetadataLoader()
        self.sent: list[Pending[ControllerRegistrationResponse]] = []
        self.lifecycle = ControllerLifecycle(
            cast(MetadataReplica, self),
            cast(ToController, self),
            REQUEST,
            clock=self.clock,
            random=SimRandom(1),
        )
        self.loader.image.offset = 0
        self.loader.image.features[METADATA_VERSION] = metadata_version
        self.lifecycle.start()

    @property
    def image(self) -> ClusterImage:
        return self.loader.image

    def when_leader_changes(self, callback: Callable[[], None]) -> None:
        self.leader_changed = callback

    def register_controller(self, request: ControllerRegistrationRequest) -> Pending[ControllerRegistrationResponse]:
        assert request is REQUEST
        self.sent.append(Pending())
        return self.sent[-1]

    def answer(self, code: ErrorCode) -> None:
        self.sent[-1].complete(ControllerRegistrationResponse(error_code=code))

    def commit(self, offset: int, incarnation_id: bytes) -> None:
        record = RegisterControllerRecord(controller_id=2, incarnation_id=incarnation_id)
        self.loader.apply([CommittedBatch(offset, offset, 1, 0, 10, [record])])

    def registers(self, incarnation_id: bytes) -> None:
        self.image.controllers[2] = ControllerImage(2, incarnation_id)


def test_it_registers_until_the_image_has_it() -> None:
    world = World()
    world.answer(ErrorCode.NOT_CONTROLLER)
    world.clock.run_for(100)
    assert len(world.sent) == 2
    world.answer(ErrorCode.NONE)
    world.clock.run_for(2_000)
    assert len(world.sent) == 3, "that leader may have lost its term before it was committed"
    world.registers(b"i" * 16)
    world.answer(ErrorCode.NONE)
    world.clock.run_for(60_000)
    assert len(world.sent) == 3


def test_an_earlier_run_is_not_this_one() -> None:
    world = World()
    world.registers(b"h" * 16)
    world.answer(ErrorCode.NETWORK_EXCEPTION)
    world.clock.run_for(100)
    assert len(world.sent) == 2


def test_a_new_leader_is_asked_at_once() -> None:
    world = World()
    world.answer(ErrorCode.NETWORK_EXCEPTION)
    world.leader_changed()
    assert len(world.sent) == 2
    world.leader_changed()
    assert len(world.sent) == 2, "the answer of the last one is not there yet"


def test_old_clusters_have_no_registrations_of_controllers() -> None:
    world = World(metadata_version=14)
    assert world.sent == []
    record = FeatureLevelRecord(name=METADATA_VERSION, feature_level=15)
    world.loader.apply([CommittedBatch(1, 1, 1, 0, 10, [record])])
    assert len(world.sent) == 1


def test_a_second_process_with_its_id_is_named(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.commit(1, b"h" * 16)
    world.commit(2, b"i" * 16)
    assert "another process" not in caplog.text, "this is the process after an earlier one"
    world.commit(3, b"j" * 16)
    assert "another process has registered as controller 2: two processes with one node.id" in caplog.text
    caplog.clear()
    world.commit(4, b"k" * 16)
    assert caplog.text == ""


def test_a_node_that_stops_is_silent() -> None:
    world = World()
    world.lifecycle.end()
    world.answer(ErrorCode.NOT_CONTROLLER)
    world.clock.run_for(60_000)
    assert len(world.sent) == 1

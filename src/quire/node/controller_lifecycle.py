"""A controller makes itself known: it registers with each active controller until the image has its registration.

The registration has the controller's addresses and the feature levels that it supports, so that no feature is raised to
a level that one of the controllers does not know. The broker on the same node registers by itself.

A registration that replaces this one while this process runs is that of a second process with the same `node.id`.
"""

import logging

from quire.client.backoff import Backoff
from quire.controller.metadata_replica import MetadataReplica
from quire.metadata.delta import ImageDelta
from quire.metadata.features import has_controller_registrations
from quire.metadata.image import ClusterImage
from quire.node.to_controller import ToController
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from quire.seams import Clock, Random, Timer

log = logging.getLogger("quire.controller")


class ControllerLifecycle:
    __slots__ = (
        "_backoff",
        "_clock",
        "_ended",
        "_is_sending",
        "_registration",
        "_replica",
        "_timer",
        "_to_controller",
        "_was_registered",
    )

    def __init__(
        self,
        replica: MetadataReplica,
        to_controller: ToController,
        registration: ControllerRegistrationRequest,
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        self._replica = replica
        self._to_controller = to_controller
        self._registration = registration
        self._clock = clock
        self._backoff = Backoff(random)
        self._timer: Timer | None = None
        self._is_sending = False
        self._was_registered = False
        self._ended = False

    def start(self) -> None:
        self._replica.when_leader_changes(self._leader_changed)
        self._replica.loader.subscribe(self._metadata_changed)
        self._register()

    def end(self) -> None:
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()

    @property
    def is_registered(self) -> bool:
        known = self._replica.image.controllers.get(self._registration.controller_id)
        return known is not None and known.incarnation_id == self._registration.incarnation_id

    def _leader_changed(self) -> None:
        self._backoff.reset()
        self._register()

    def _metadata_changed(self, _image: ClusterImage, delta: ImageDelta) -> None:
        if delta.features:
            self._register()  # From some metadata.version on, controllers register.
        if self._registration.controller_id in delta.controllers:
            self._registration_changed()

    def _registration_changed(self) -> None:
        if self._was_registered and not self.is_registered and not self._ended:
            log.error(
                "another process has registered as controller %d: two processes with one node.id and one directory "
                "vote twice, and committed metadata could be lost; stop the one that should not run, and give it a "
                "node.id and a directory of its own",
                self._registration.controller_id,
            )
        self._was_registered = self.is_registered

    def _register(self) -> None:
        is_possible = has_controller_registrations(self._replica.image.metadata_version)
        if self._ended or self._is_sending or self.is_registered or not is_possible:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._is_sending = True
        self._to_controller.register_controller(self._registration).when_done(self._answered)

    def _answered(self, response: ControllerRegistrationResponse) -> None:
        self._is_sending = False
        if self._ended:
            return
        code = ErrorCode(response.error_code)
        if code not in (ErrorCode.NONE, ErrorCode.NOT_CONTROLLER, ErrorCode.NETWORK_EXCEPTION):
            log.warning("this controller could not register: %s %s", code.name, response.error_message or "")
        # Also after a success: until the image has the registration, it could be that of a leader that lost its term.
        self._timer = self._clock.call_later(self._backoff.next_ms(), self._register)

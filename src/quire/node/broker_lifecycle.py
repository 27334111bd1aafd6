"""A broker's life as the controller sees it: registered, caught up, let in, and on its way out.

Also on a node that is its own controller the broker says who it is and is fenced until it has caught up, with the same
messages that brokers elsewhere send. Heartbeats go on for as long as the node runs.
"""

import logging
from collections.abc import Callable
from typing import Protocol

from quire.pending import Pending
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quire.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from quire.seams import Clock, Timer

log = logging.getLogger("quire.broker")

RETRY_MS = 50
LEAVE_PATIENCE_MS = 10_000
"""How long a broker waits to be let go: a controller whose disk is full does not answer before there is room."""
NO_EPOCH = -1


class ToController(Protocol):
    """The two requests a broker's life is made of."""

    def register_broker(
        self, request: BrokerRegistrationRequest, now_ms: int
    ) -> Pending[BrokerRegistrationResponse]: ...

    def broker_heartbeat(self, request: BrokerHeartbeatRequest, now_ms: int) -> Pending[BrokerHeartbeatResponse]: ...


class BrokerLifecycle:
    def __init__(
        self,
        controller: ToController,
        clock: Clock,
        registration: BrokerRegistrationRequest,
        heartbeat_interval_ms: int,
        applied_offset: Callable[[], int],
        failed_directories: Callable[[], list[bytes]],
        let_in: Callable[[], None],
    ) -> None:
        """`applied_offset` tells how far this broker has followed the metadata log; `let_in` is called once."""
        self._controller = controller
        self._clock = clock
        self._registration = registration
        self._interval_ms = heartbeat_interval_ms
        self._applied_offset = applied_offset
        self._failed_directories = failed_directories
        self._let_in: Callable[[], None] | None = let_in
        self._timer: Timer | None = None
        self._leaving: Callable[[], None] | None = None
        self._patience: Timer | None = None
        self._ended = False
        self.epoch = NO_EPOCH
        """Given by the controller with each registration."""

    def start(self) -> None:
        self._controller.register_broker(self._registration, self._clock.now_ms()).when_done(self._registered)

    def leave(self, left: Callable[[], None]) -> None:
        """Asks the controller to move everything off this broker; `left` is called when it may go."""
        if self.epoch == NO_EPOCH:
            self.end()
            left()
            return
        self._leaving = left
        self._patience = self._clock.call_later(LEAVE_PATIENCE_MS, self._leave_unasked)
        self._heartbeat()

    def _leave_unasked(self) -> None:
        log.warning("the controller has not let this broker go in %d s: it goes as it is", LEAVE_PATIENCE_MS // 1000)
        self._leave()

    def _leave(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self.end()
        left, self._leaving = self._leaving, None
        if left is not None:
            left()

    def end(self) -> None:
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()

    def _registered(self, response: BrokerRegistrationResponse) -> None:
        if response.error_code != ErrorCode.NONE:
            log.warning("the controller did not register this broker: %s", ErrorCode(response.error_code).name)
            self._later(RETRY_MS, self.start)
            return
        self.epoch = response.broker_epoch
        self._heartbeat()

    def _heartbeat(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        request = BrokerHeartbeatRequest(
            broker_id=self._registration.broker_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._applied_offset(),
            want_shut_down=self._leaving is not None,
            offline_log_dirs=self._failed_directories(),
        )
        self._controller.broker_heartbeat(request, self._clock.now_ms()).when_done(self._answered)

    def _answered(self, response: BrokerHeartbeatResponse) -> None:
        if self._ended:
            return
        if self._leaving is not None and (response.should_shut_down or response.error_code != ErrorCode.NONE):
            self._leave()
            return
        if response.error_code == ErrorCode.STALE_BROKER_EPOCH:
            log.warning("the controller knows another life of this broker: registering again")
            self._later(RETRY_MS, self.start)
            return
        if not response.is_fenced and self._let_in is not None:
            let_in, self._let_in = self._let_in, None
            let_in()
        waiting = self._let_in is not None or self._leaving is not None
        self._later(RETRY_MS if waiting else self._interval_ms, self._heartbeat)

    def _later(self, delay_ms: float, action: Callable[[], None]) -> None:
        if not self._ended:
            self._timer = self._clock.call_later(delay_ms, action)

"""A broker's life as the controller sees it: registered and fenced, unfenced once it has caught up, shutting down.

A broker on the same node as the active controller sends the same messages as any other broker. It sends
heartbeats for as long as the node runs, to whichever node is the active controller. What is refused or lost is sent
again. If the controller does not know the broker's registration, the broker registers again.
"""

import logging
from collections.abc import Callable

from quire.node.to_controller import ToController
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quire.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from quire.seams import Clock, Timer

log = logging.getLogger("quire.broker")

RETRY_MS = 50
LEAVE_PATIENCE_MS = 10_000
"""How long a controlled shutdown may take: the controller may not answer, or its disk may be full."""
NO_CONTROLLER_PATIENCE_MS = 3_000
"""How long it may find no controller at all: longer than an election takes. A cluster that stops as a whole has none
as soon as most of its controllers have stopped."""
NO_EPOCH = -1

_NOT_REGISTERED = (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED)
_PASSES = (ErrorCode.NOT_CONTROLLER, ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT)
"""Normal while another node becomes the controller."""
_REASONS = {
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: ", because a process with the same node.id is alive, or was until its "
    "session ends (broker.session.timeout.ms)",
    ErrorCode.UNSUPPORTED_VERSION: ", because the cluster has features at levels that this node does not support",
}


class BrokerLifecycle:
    def __init__(
        self,
        controller: ToController,
        clock: Clock,
        registration: BrokerRegistrationRequest,
        *,
        heartbeat_interval_ms: int,
        applied_offset: Callable[[], int],
        failed_directories: Callable[[], list[bytes]],
        registered: Callable[[int], None],
        unfenced: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        """`applied_offset` tells how far this broker follows the metadata log.

        `registered` is called with each new broker epoch before the first heartbeat with it, and `unfenced` once, after
        that. `failed` is called, with the reason, if the broker cannot be part of this cluster.
        """
        self._controller = controller
        self._clock = clock
        self._registration = registration
        self._interval_ms = heartbeat_interval_ms
        self._applied_offset = applied_offset
        self._failed_directories = failed_directories
        self._when_registered = registered
        self._when_unfenced: Callable[[], None] | None = unfenced
        self._failed = failed
        self._timer: Timer | None = None
        self._next: Callable[[], None] | None = None
        """What the timer is for; None while a request is on its way."""
        self._leaving: Callable[[], None] | None = None
        self._patience: Timer | None = None
        self._without_controller_since_ms: float | None = None
        self._ended = False
        self._last_refusal = ErrorCode.NONE
        self.epoch = NO_EPOCH
        """Given by the controller with each registration."""

    def start(self) -> None:
        self._next = None
        self._controller.register_broker(self._registration).when_done(self._registered)

    def leave(self, left: Callable[[], None]) -> None:
        """Asks the controller for a controlled shutdown; `left` is called when this broker may stop."""
        if self.epoch == NO_EPOCH:
            self.end()
            left()
            return
        self._leaving = left
        self._patience = self._clock.call_later(LEAVE_PATIENCE_MS, self._controller_silent)
        self._heartbeat()

    def leave_without_controller(self) -> None:
        """Ends a controlled shutdown that no controller is going to answer, because the whole cluster stops."""
        if self._leaving is not None:
            self._leave()

    def controller_changed(self) -> None:
        """Sends what is due next to the new active controller at once.

        That opens the connection whose end tells the controller to check whether this broker has ended.
        """
        if self._next is not None and self._timer is not None and not self._ended:
            self._timer.cancel()
            self._next()

    def _controller_silent(self) -> None:
        self._leave_without("the controller did not answer the controlled shutdown within", LEAVE_PATIENCE_MS)

    def _leave_without(self, reason: str, after_ms: int) -> None:
        log.warning("%s %d s: stopping without it", reason, after_ms // 1000)
        self._leave()

    def _leave(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self.end()
        left, self._leaving = self._leaving, None
        if left is not None:
            left()

    @property
    def has_ended(self) -> bool:
        return self._ended

    def end(self) -> None:
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()

    def _registered(self, response: BrokerRegistrationResponse) -> None:
        if self._ended:
            return
        if response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID:
            self.end()
            self._failed(
                f"the controllers are of another cluster than this broker's data ({self._registration.cluster_id}): "
                "correct controller.quorum.*, or use the data directory of that cluster"
            )
            return
        if response.error_code != ErrorCode.NONE:
            self._refused("register this broker", ErrorCode(response.error_code))
            self._later(RETRY_MS, self.start)
            return
        self._last_refusal = ErrorCode.NONE
        if response.broker_epoch != self.epoch:
            self.epoch = response.broker_epoch
            self._when_registered(self.epoch)
        self._heartbeat()

    def _refused(self, what: str, code: ErrorCode) -> None:
        """Logs each reason once: the next attempts follow soon."""
        if code is not self._last_refusal:
            level = logging.INFO if code in _PASSES else logging.WARNING
            log.log(level, "the controller did not %s: %s%s; trying again", what, code.name, _REASONS.get(code, ""))
        self._last_refusal = code

    def _heartbeat(self) -> None:
        self._next = None
        if self._timer is not None:
            self._timer.cancel()
        request = BrokerHeartbeatRequest(
            broker_id=self._registration.broker_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._applied_offset(),
            want_shut_down=self._leaving is not None,
            offline_log_dirs=self._failed_directories(),
        )
        self._controller.broker_heartbeat(request).when_done(self._answered)

    def _answered(self, response: BrokerHeartbeatResponse) -> None:
        if self._ended:
            return
        code = ErrorCode(response.error_code)
        if self._leaving is not None:
            self._answered_while_leaving(response, code)
        elif code in _NOT_REGISTERED:
            self._refused("know this registration of the broker", code)
            self._later(RETRY_MS, self.start)
        elif code is not ErrorCode.NONE:
            self._refused("take a heartbeat", code)
            self._later(RETRY_MS, self._heartbeat)
        else:
            self._last_refusal = ErrorCode.NONE
            if not response.is_fenced and self._when_unfenced is not None:
                when_unfenced, self._when_unfenced = self._when_unfenced, None
                when_unfenced()
            self._later(RETRY_MS if response.is_fenced else self._interval_ms, self._heartbeat)

    def _answered_while_leaving(self, response: BrokerHeartbeatResponse, code: ErrorCode) -> None:
        """Another controller, or the same one later, may still move the leaderships away."""
        if response.should_shut_down or code in _NOT_REGISTERED:
            self._leave()
        elif code is ErrorCode.KAFKA_STORAGE_ERROR:
            log.warning("the controller has no room on its disk for a controlled shutdown: stopping without it")
            self._leave()
        elif self._finds_no_controller(code):
            self._leave_without(
                "no active controller was found for the controlled shutdown in", NO_CONTROLLER_PATIENCE_MS
            )
        else:
            self._later(RETRY_MS, self._heartbeat)

    def _finds_no_controller(self, code: ErrorCode) -> bool:
        """Whether that has been so for as long as it may be."""
        now_ms = self._clock.monotonic_ms()
        if code not in (ErrorCode.NOT_CONTROLLER, ErrorCode.NETWORK_EXCEPTION):
            self._without_controller_since_ms = None
        elif self._without_controller_since_ms is None:
            self._without_controller_since_ms = now_ms
        since_ms = self._without_controller_since_ms
        return since_ms is not None and now_ms - since_ms >= NO_CONTROLLER_PATIENCE_MS

    def _later(self, delay_ms: float, action: Callable[[], None]) -> None:
        if not self._ended:
            self._next = action
            self._timer = self._clock.call_later(delay_ms, action)

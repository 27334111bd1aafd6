"""The sessions of brokers with the active controller: which brokers are alive, and which are fenced because they ended.

A session ends when no heartbeat came within `broker.session.timeout.ms`, or earlier if the broker's process is seen to
be gone (`failure_detection.py`). A controller that was frozen itself gives every broker a new session.

`ActiveController` owns one for its term and passes on registrations, heartbeats and closed connections.
"""

import logging

from quire.config.broker_config import BrokerConfig
from quire.controller import brokers, elections
from quire.controller.broker_probe import ProbeOutcome, probe
from quire.controller.command_runner import CommandRunner
from quire.controller.controller_result import Portions
from quire.controller.failure_detection import FailureDetection, Probe
from quire.controller.heartbeats import Heartbeats
from quire.controller.stall_watch import StallWatch
from quire.metadata.image import BrokerImage, ClusterImage
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quire.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from quire.raft.metadata_log import MetadataLog
from quire.seams import Clock, Connector, Timer

logger = logging.getLogger("quire.controller")

NO_CONNECTION = -1
"""The broker in this process needs none."""


class BrokerSessions:
    def __init__(
        self,
        config: BrokerConfig,
        cluster_id: str,
        log: MetadataLog,
        commands: CommandRunner,
        *,
        clock: Clock,
        network: Connector,
        incarnation_id: bytes,
    ) -> None:
        """`incarnation_id` is that of this process, and of the broker in it."""
        self._config = config
        self._cluster_id = cluster_id
        self._incarnation_id = incarnation_id
        self._log = log
        self._commands = commands
        self._clock = clock
        self._network = network
        session_timeout_ms = config.get_int("broker.session.timeout.ms")
        heartbeat_interval_ms = config.get_int("broker.heartbeat.interval.ms")
        self._heartbeats = Heartbeats(session_timeout_ms)
        self._detection = FailureDetection(
            session_timeout_ms=session_timeout_ms, heartbeat_interval_ms=heartbeat_interval_ms
        )
        self._stalls = StallWatch(heartbeat_interval_ms, clock.monotonic_ms())
        self._timer: Timer | None = None
        self._stopped = False

    def start(self) -> None:
        """Every unfenced broker gets a full session to send its first heartbeat, and is probed once.

        The broker in this process is not. An earlier incarnation of it has ended, because this process holds the lock
        on its data directory: it is fenced at once, as the recovery of the logs may take longer than a session.
        """
        now_ms = self._clock.monotonic_ms()
        topology = self._config.topology
        for broker in self._commands.image.brokers_sorted():
            if broker.fenced:
                self._detection.was_fenced(broker.broker_id, now_ms)
                continue
            is_here = topology.is_broker and broker.broker_id == topology.node_id
            if is_here and broker.incarnation_id != self._incarnation_id:
                self._fence(broker.broker_id, "its process has ended")
                continue
            self._heartbeats.heard(broker.broker_id, broker.epoch, now_ms)
            if not is_here:
                self._probe(self._detection.term_began(broker.broker_id, broker.epoch, now_ms))
        self._watch()

    def stop(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    # --- What brokers send

    def register(
        self, image: ClusterImage, request: BrokerRegistrationRequest, connection_id: int
    ) -> Portions[BrokerRegistrationResponse]:
        now_ms = self._now_ms()
        response = yield from brokers.register_broker(
            image,
            self._config,
            self._cluster_id,
            request,
            next_offset=lambda: self._commands.next_offset,
            may_replace=lambda: self._may_replace(image.brokers.get(request.broker_id), request, now_ms),
        )
        if response.error_code == ErrorCode.NONE:
            epoch = response.broker_epoch
            self._heartbeats.heard(request.broker_id, epoch, now_ms)
            self._detection.heard(request.broker_id, epoch, connection_id, now_ms)
            self._watch()
        return response

    def _may_replace(self, existing: BrokerImage | None, request: BrokerRegistrationRequest, now_ms: float) -> bool:
        """Whether the earlier incarnation has ended, or has lost its connection and this one has its directories."""
        if request.incarnation_id == self._incarnation_id:
            return True  # It is this process, which holds the lock on the data directory.
        if existing is None or not self._heartbeats.is_alive(existing.broker_id, existing.epoch, now_ms):
            return True
        has_its_directories = not set(existing.log_dirs).isdisjoint(request.log_dirs)
        return has_its_directories and self._detection.may_be_replaced(existing.broker_id, existing.epoch, now_ms)

    def heard(
        self, image: ClusterImage, request: BrokerHeartbeatRequest, connection_id: int
    ) -> Portions[BrokerHeartbeatResponse]:
        now_ms = self._now_ms()
        brokers.check_sender(image, request)
        self._detection.heard(request.broker_id, request.broker_epoch, connection_id, now_ms)
        return (
            yield from brokers.heartbeat(
                image,
                self._config,
                self._heartbeats,
                request,
                now_ms=now_ms,
                next_offset=lambda: self._commands.next_offset,
            )
        )

    def forget(self, broker_id: int) -> None:
        self._heartbeats.forget(broker_id)
        self._detection.forget(broker_id)

    # --- Brokers whose process is gone

    def connection_closed(self, connection_id: int) -> None:
        for each in self._detection.connection_closed(connection_id):
            self._probe(each)

    def _probe(self, each: Probe) -> None:
        if each.delay_ms:
            self._clock.call_later(each.delay_ms, lambda: self._connect(each))
        else:
            self._connect(each)

    def _connect(self, each: Probe) -> None:
        broker = self._unfenced(each)
        if self._stopped or broker is None or not broker.endpoints:
            return
        # A node that is only a controller may not know the name of the brokers' listener.
        endpoint = broker.endpoint(self._config.topology.inter_broker_listener) or broker.endpoints[0]
        probe(
            endpoint.host,
            endpoint.port,
            lambda outcome: self._probed(each, outcome),
            clock=self._clock,
            network=self._network,
        )

    def _probed(self, each: Probe, outcome: ProbeOutcome) -> None:
        if self._stopped:
            return
        if outcome is ProbeOutcome.ACCEPTED:
            again = self._detection.probe_accepted(each)
            if again is not None:
                self._probe(again)
        elif outcome is ProbeOutcome.UNKNOWN:
            self._detection.probe_timed_out(each)
        else:
            self._refused(each)

    def _refused(self, each: Probe) -> None:
        image = self._commands.image
        if self._unfenced(each) is not None and self._detection.probe_refused(
            each, self._now_ms(), lambda: elections.keeps_leaders_without(image, each.broker_id)
        ):
            self._fence(each.broker_id, "its process is gone")

    def _unfenced(self, each: Probe) -> BrokerImage | None:
        broker = self._commands.image.brokers.get(each.broker_id)
        return broker if broker is not None and broker.epoch == each.epoch and not broker.fenced else None

    # --- Brokers that are silent

    def _watch(self) -> None:
        """Sets the timer to the moment when the first session ends if no further heartbeat arrives.

        It fires more often than that, so that a stall of this process is noticed.
        """
        if self._timer is not None:
            self._timer.cancel()
        expires_in_ms = max(self._heartbeats.next_expiry_ms - self._clock.monotonic_ms(), 0)
        # A timer that fires too early would find no session ended and be set again at once.
        self._timer = self._clock.call_later(min(expires_in_ms + 1, self._stalls.interval_ms), self._fence_silent)

    def _fence_silent(self) -> None:
        now_ms = self._now_ms()
        image = self._commands.image
        for broker_id in self._heartbeats.silent(now_ms):
            broker = image.brokers.get(broker_id)
            if broker is not None and broker.incarnation_id == self._incarnation_id:
                # The broker in this process runs while its controller does: both were delayed together.
                self._heartbeats.heard(broker_id, broker.epoch, now_ms)
            elif broker is not None and not broker.fenced:
                self._fence(broker_id, "no heartbeat within the session timeout")
            else:
                self.forget(broker_id)
        self._watch()

    def _fence(self, broker_id: int, reason: str) -> None:
        self.forget(broker_id)
        logger.warning("broker fenced broker=%d reason=%s", broker_id, reason)
        self._commands.write_to_the_end(lambda image: brokers.fence(image, self._config, broker_id))

    def _now_ms(self) -> float:
        """The time, for decisions about sessions. After a stall every broker gets a new one first."""
        now_ms = self._clock.monotonic_ms()
        stalled_ms = self._stalls.look(now_ms)
        if stalled_ms:
            logger.warning("controller stalled duration_ms=%d: brokers get new sessions", stalled_ms)
            self._heartbeats.renew(now_ms)
        return now_ms

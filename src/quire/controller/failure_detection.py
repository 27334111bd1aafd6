"""Which brokers are gone, before their sessions end: decided from closed connections and from attempts to connect.

A broker sends its heartbeats over one connection. If that closes, the controller probes the broker: it connects to the
broker's listener. A refusal means that no process listens there now, so the broker is fenced at once. Any other
outcome says nothing, and the broker keeps its session.

    heartbeat connection closes ──▶ probe ──▶ refused  ──▶ fence, if it is the first within a session timeout, or if
    a term begins ────────────────▶   ▲                    no partition loses its last leader by it
                                      │  ──▶ accepted ──▶ again, twice: a process that was killed closes its
                                      └──────────┘         listener a moment after its connections
                                         ──▶ timed out ─▶ wait for the session to end

Networks may lie: a proxy or a firewall can refuse for a broker that runs. Such a broker loses its leaderships, and its
next heartbeat unfences it. Each change of leader has a new leader epoch, so two brokers never lead in one epoch. Only
one broker in a session timeout can take partitions offline this way, also across a change of the active controller: a
broker that is fenced when a term begins counts as the first.

This class does no I/O. `BrokerSessions` reports events, and carries out the probes and fences that are returned.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

DELAYS_MS = (0.0, 20.0, 100.0)
"""Before each attempt to connect."""


class Probe(NamedTuple):
    """Connect to this broker after `delay_ms`, and report the outcome."""

    broker_id: int
    epoch: int
    number: int
    """Tells the probes of a term from each other."""
    attempt: int = 0

    @property
    def delay_ms(self) -> float:
        return DELAYS_MS[self.attempt]


@dataclass(slots=True)
class _Watched:
    """One registration of a broker."""

    epoch: int
    since_ms: float
    connection_id: int | None = None
    """Of the last heartbeat or registration; None before the first in this term."""
    is_closed: bool = False
    probe: int | None = None
    """The number of the probe whose outcome counts."""


class FailureDetection:
    """Lives for one term of the active controller."""

    __slots__ = ("_fenced_ms", "_heartbeat_interval_ms", "_probes", "_session_timeout_ms", "_watched")

    def __init__(self, *, session_timeout_ms: float, heartbeat_interval_ms: float) -> None:
        self._session_timeout_ms = session_timeout_ms
        self._heartbeat_interval_ms = heartbeat_interval_ms
        self._watched: dict[int, _Watched] = {}
        self._fenced_ms: dict[int, float] = {}
        """When brokers were last fenced because of a refusal, as far as this controller can tell."""
        self._probes = 0

    def term_began(self, broker_id: int, epoch: int, now_ms: float) -> Probe:
        """An unfenced broker of the image; it may have ended together with the last active controller."""
        watched = self._watched[broker_id] = _Watched(epoch, now_ms)
        return self._next_probe(broker_id, watched)

    def was_fenced(self, broker_id: int, now_ms: float) -> None:
        """A broker is fenced when the term begins: an earlier controller may have done that a moment ago."""
        self._fenced_ms[broker_id] = now_ms

    def heard(self, broker_id: int, epoch: int, connection_id: int, now_ms: float) -> None:
        """A heartbeat or a registration was accepted. An earlier probe no longer counts."""
        watched = self._watched.get(broker_id)
        if watched is None or watched.epoch != epoch:
            watched = self._watched[broker_id] = _Watched(epoch, now_ms)
        watched.connection_id = connection_id
        watched.is_closed = False
        watched.probe = None

    def forget(self, broker_id: int) -> None:
        """The broker is fenced or unregistered."""
        self._watched.pop(broker_id, None)

    def connection_closed(self, connection_id: int) -> list[Probe]:
        probes: list[Probe] = []
        for broker_id, watched in self._watched.items():
            if watched.connection_id == connection_id and not watched.is_closed:
                watched.is_closed = True
                probes.append(self._next_probe(broker_id, watched))
        return probes

    def probe_accepted(self, probe: Probe) -> Probe | None:
        watched = self._take(probe)
        if watched is None or probe.attempt + 1 >= len(DELAYS_MS):
            return None
        return self._next_probe(probe.broker_id, watched, probe.attempt + 1)

    def probe_timed_out(self, probe: Probe) -> None:
        self._take(probe)

    def probe_refused(self, probe: Probe, now_ms: float, keeps_leaders: Callable[[], bool]) -> bool:
        """Whether to fence the broker now.

        `keeps_leaders` tells whether each partition that has the broker in ISR or ELR keeps another leader. It is
        called only if another broker was fenced this way within a session timeout.
        """
        if self._take(probe) is None:
            return False
        since_ms = now_ms - self._session_timeout_ms
        is_second = any(
            at_ms > since_ms for broker_id, at_ms in self._fenced_ms.items() if broker_id != probe.broker_id
        )
        if is_second and not keeps_leaders():
            return False
        self._fenced_ms[probe.broker_id] = now_ms
        return True

    def may_be_replaced(self, broker_id: int, epoch: int, now_ms: float) -> bool:
        """Whether a new incarnation with the same directories need not wait until the session of this one ends.

        Its connection has closed, or it has not connected to this controller: a broker that runs does so within a
        heartbeat interval.
        """
        watched = self._watched.get(broker_id)
        if watched is None or watched.epoch != epoch:
            return False
        if watched.connection_id is None:
            return now_ms >= watched.since_ms + self._heartbeat_interval_ms
        return watched.is_closed

    def _next_probe(self, broker_id: int, watched: _Watched, attempt: int = 0) -> Probe:
        self._probes += 1
        watched.probe = self._probes
        return Probe(broker_id, watched.epoch, self._probes, attempt)

    def _take(self, probe: Probe) -> _Watched | None:
        """The broker, if it waits for this probe. The outcome counts once."""
        watched = self._watched.get(probe.broker_id)
        if watched is None or watched.probe != probe.number:
            return None
        watched.probe = None
        return watched

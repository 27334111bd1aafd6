"""Connects to a broker's listener to learn whether a process listens there, and closes the connection again.

`BrokerSessions` calls it; `failure_detection.py` says what the outcomes mean.
"""

from collections.abc import Callable
from enum import Enum

from quire.seams import Clock, Connector, Transport

PROBE_TIMEOUT_MS = 1_000.0


class ProbeOutcome(Enum):
    REFUSED = "refused"
    """The broker's machine says that no process listens at the address."""
    ACCEPTED = "accepted"
    UNKNOWN = "unknown"
    """No answer in time, or an error that says nothing about the process: no route, no such host name."""


def probe(host: str, port: int, concluded: Callable[[ProbeOutcome], None], *, clock: Clock, network: Connector) -> None:
    """Calls `concluded` once, never from within this call."""
    attempt = _Attempt(clock, concluded)
    network.connect(host, port, attempt.connected, attempt.failed)


class _Attempt:
    """Implements `quire.seams.Receiver` for a connection that carries nothing."""

    __slots__ = ("_clock", "_concluded", "_room", "_timer")

    def __init__(self, clock: Clock, concluded: Callable[[ProbeOutcome], None]) -> None:
        self._clock = clock
        self._concluded: Callable[[ProbeOutcome], None] | None = concluded
        self._room = bytearray(1)
        self._timer = clock.call_later(PROBE_TIMEOUT_MS, lambda: self._conclude(ProbeOutcome.UNKNOWN))

    def connected(self, transport: Transport) -> "_Attempt":
        # The transport gets its receiver from the return value, so it is closed after that.
        self._clock.call_soon(transport.close)
        self._conclude(ProbeOutcome.ACCEPTED)
        return self

    def failed(self, error: Exception) -> None:
        self._conclude(ProbeOutcome.REFUSED if isinstance(error, ConnectionRefusedError) else ProbeOutcome.UNKNOWN)

    def _conclude(self, outcome: ProbeOutcome) -> None:
        self._timer.cancel()
        concluded, self._concluded = self._concluded, None
        if concluded is not None:
            concluded(outcome)

    def buffer(self) -> memoryview:
        return memoryview(self._room)

    def received(self, size: int) -> None:
        """A broker says nothing first; what another program says is ignored."""

    def drained(self) -> None:
        pass

    def closed(self, reason: str) -> None:
        pass

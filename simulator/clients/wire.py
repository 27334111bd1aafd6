"""One connection of a simulated client: requests out, answers back in their order.

It can also do what no client library does on purpose, but what happens on networks: send a frame twice, send only the
first part of one, stop reading for a while.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quire.protocol import apis
from quire.protocol.codec import decode, decoder, encode
from quire.protocol.errors import ProtocolError
from quire.protocol.messages.headers import RequestHeader, ResponseHeader
from quire.protocol.schema import Message
from quire.seams import Transport
from simulator.clock import SimClock, SimTimer
from simulator.life import Life
from simulator.tasks import Promise
from simulator.violation import Violation

ROOM_BYTES = 4096


class Lost(Exception):  # noqa: N818
    """The connection ended, or no answer came in time: it is unknown whether the request was executed."""


@dataclass(slots=True)
class _Asked:
    correlation_id: int
    api_key: int
    version: int
    answer: Promise[Any]
    timer: SimTimer


class Wire:
    """Implements `quire.seams.Receiver`."""

    def __init__(
        self, clock: SimClock, transport: Transport, client_id: str, life: Life, era: Callable[[], int]
    ) -> None:
        """`era` tells the era of a request that is sent now."""
        self.life = life
        """The node's life at the other end."""
        self._era = era
        self.lost: str | None = None
        """Why the connection has ended; None while it is open."""
        self._clock = clock
        self._transport = transport
        self._client_id = client_id
        self._correlation_id = 0
        self._asked: deque[_Asked] = deque()
        self._room = bytearray(ROOM_BYTES)
        self._received = bytearray()
        self._deaf = False

    @property
    def era(self) -> int:
        """The losses of records so far; of a node on its own, those before it was connected."""
        return self._era()

    @property
    def node(self) -> str:
        return self.life.node

    # --- Asking

    def ask(self, request: Message, version: int, timeout_ms: float, *, copies: int = 1) -> list[Promise[Any]]:
        """Sends the request `copies` times, and returns a promise of each answer, which fails with Lost.

        Each copy has its own timeout: a node starts with a copy when the one before is answered, and a member that
        joins twice may have to wait for two rebalances.
        """
        frame = self.frame(request, version)
        answers = []
        for copy in range(1, copies + 1):
            answer: Promise[Any] = Promise()
            timer = self._clock.call_later(copy * timeout_ms, self._giving_up(copy * timeout_ms))
            self._asked.append(_Asked(self._correlation_id, request.API_KEY, version, answer, timer))
            answers.append(answer)
        if self.lost is not None:
            self._forget_asked()
        else:
            self._transport.write([frame] * copies)
        return answers

    def tell(self, request: Message, version: int) -> None:
        """Sends a request that has no answer: Produce with acks=0."""
        if self.lost is None:
            self._transport.write([self.frame(request, version)])

    def break_off(self, request: Message, version: int, part: float) -> None:
        """Sends only the first part of the frame, then disconnects."""
        frame = self.frame(request, version)
        if self.lost is None:
            self._transport.write([frame[: int(len(frame) * part)]])
            self._transport.close()

    def send_raw(self, content: bytes) -> None:
        """Sends bytes that may not be a request; any answer is ignored."""
        if self.lost is None:
            self._deaf = True
            self._transport.write([content])

    def nap(self, duration_ms: float) -> None:
        """Stops reading for this time; the node must queue the answers, within limits."""
        self._transport.pause()
        self._clock.call_later(duration_ms, self._transport.resume)

    def abort(self) -> None:
        self._give_up("aborted")

    def close(self) -> None:
        self._transport.close()

    def frame(self, request: Message, version: int) -> bytes:
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=request.API_KEY,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        )
        content = encode(header, apis.request_header_version(request.API_KEY, version)) + encode(request, version)
        return len(content).to_bytes(4, "big") + content

    def _giving_up(self, timeout_ms: float) -> Callable[[], None]:
        return lambda: self._give_up(f"no answer within {timeout_ms:.0f} ms")

    def _give_up(self, reason: str) -> None:
        if self.lost is None:
            self.lost = reason
            self._transport.abort()
            self._forget_asked()

    def _forget_asked(self) -> None:
        while self._asked:
            asked = self._asked.popleft()
            asked.timer.cancel()
            asked.answer.fail(Lost(self.lost))

    # --- The receiver

    def buffer(self) -> memoryview:
        return memoryview(self._room)

    def received(self, size: int) -> None:
        if self._deaf:
            return
        self._received += self._room[:size]
        while len(self._received) >= 4:
            end = 4 + int.from_bytes(self._received[:4], "big", signed=True)
            if len(self._received) < end:
                break
            frame = bytes(self._received[4:end])
            del self._received[:end]
            self._answered(frame)

    def drained(self) -> None:
        pass

    def closed(self, reason: str) -> None:
        self.lost = self.lost or reason
        self._forget_asked()

    def _answered(self, frame: bytes) -> None:
        if not self._asked:
            raise Violation("only requests are answered", f"{self._client_id} got {len(frame)} bytes without a request")
        asked = self._asked.popleft()
        asked.timer.cancel()
        name = apis.API_NAMES[asked.api_key]
        try:
            header_version = apis.response_header_version(asked.api_key, asked.version)
            header, position = decoder(ResponseHeader, header_version)(memoryview(frame), 0)
            answer = decode(apis.response_class(asked.api_key), frame, asked.version, position)
        except ProtocolError as error:
            raise Violation("answers can be read", f"{name} v{asked.version} to {self._client_id}: {error}") from error
        if header.correlation_id != asked.correlation_id:
            raise Violation(
                "requests are answered in order",
                f"{self._client_id} asked {name} with id {asked.correlation_id} and got {header.correlation_id}",
            )
        asked.answer.keep(answer)

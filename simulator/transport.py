"""One end of a simulated connection: the Transport seam on virtual time.

It guarantees what TCP guarantees: bytes arrive in order, in pieces of any size, after any delay. What the other side
does not read fills a window and then queues here, so back-pressure is real. A connection may break at any moment, and
then it is unknown how many of the last bytes arrived. File slices are read when they are sent, as by sendfile, so a
file that was truncated or overwritten too early is noticed. Its owner may close the file meanwhile, as on real sockets.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol
from zlib import crc32

from quire.seams import FileSlice, Part, Receiver
from simulator.disk import SimFile

ACKNOWLEDGED_BYTES = 500
"""The receiver tells the sender of this many bytes at once. No window is smaller than twice as many."""


class Link(Protocol):
    """What a transport needs of the network between its host and the other one."""

    def transmit(self, sender: "SimTransport", note: str, arrive: Callable[[], None]) -> None: ...

    def call_soon(self, host: str, callback: Callable[[], None]) -> None: ...

    def segment_size(self, most: int) -> int: ...

    def breaks_now(self) -> bool: ...

    @property
    def window_bytes(self) -> int: ...


class SimTransport:
    """Implements `quire.seams.Transport`. `other` is the end on the other host."""

    __slots__ = (
        "_behind",
        "_closing",
        "_delivering",
        "_end_reason",
        "_ended",
        "_in_flight",
        "_inbox",
        "_left",
        "_link",
        "_paused",
        "_peer_finished",
        "_queue",
        "_queued_bytes",
        "_receiver",
        "_unacknowledged",
        "arrival_ms",
        "host",
        "name",
        "other",
        "peer_address",
    )

    other: "SimTransport"

    def __init__(self, link: Link, host: str, name: str, peer_address: str) -> None:
        self.host = host
        self.name = name
        self.peer_address = peer_address
        self.arrival_ms = 0.0
        """When the last thing sent arrives; nothing sent later arrives earlier."""
        self._link = link
        self._receiver: Receiver | None = None
        self._queue: deque[bytes | FileSlice] = deque()
        self._queued_bytes = 0
        self._in_flight = 0
        self._unacknowledged = 0
        self._inbox: deque[bytes] = deque()
        self._paused = False
        self._left: Callable[[], None] | None = None
        self._behind = False
        self._closing = False
        self._peer_finished = False
        self._ended = False
        self._end_reason: str | None = None
        self._delivering = False

    # --- The seam

    @property
    def peer(self) -> str:
        return self.peer_address

    @property
    def queued_bytes(self) -> int:
        return self._queued_bytes

    def write(self, parts: Sequence[Part]) -> None:
        if self._closing or self._ended:
            return
        for part in parts:
            if size := len(part):
                if isinstance(part, FileSlice):
                    _hold(part)
                elif not isinstance(part, bytes):
                    part = bytes(part)
                self._queue.append(part)
                self._queued_bytes += size
        self._pump()
        self._behind = bool(self._queue)

    def pause(self, left: Callable[[], None] | None = None) -> None:
        self._paused = True
        self._left = left
        if self._peer_finished:
            self._link.call_soon(self.host, self._finished_while_paused)

    def resume(self) -> None:
        if self._paused:
            self._paused = False
            self._left = None
            self._link.call_soon(self.host, self._deliver)

    def close(self) -> None:
        if not self._closing and not self._ended:
            self._closing = True
            self._pump()

    def abort(self) -> None:
        if not self._ended:
            self._reset_other()
            self.end("aborted")

    # --- The network's side

    @property
    def ended(self) -> bool:
        return self._ended

    def begin(self, receiver: Receiver) -> None:
        """Sets the owner. If the connection has already broken, the owner is notified next."""
        self._receiver = receiver
        self._link.call_soon(self.host, self._report_end if self._ended else self._deliver)

    def end(self, reason: str) -> None:
        """Ends the connection on this side; the owner is notified soon, exactly once, as the last event."""
        if not self._ended:
            self._ended = True
            self._end_reason = reason
            self._drop_queue()
            self._link.call_soon(self.host, self._report_end)

    @property
    def forgotten(self) -> bool:
        """Whether it has ended and its owner knows."""
        return self._ended and self._end_reason is None

    def vanish(self) -> None:
        """The host is gone: its peer is notified, its owner is not."""
        if not self._ended:
            self._link.transmit(self, "gone", lambda: self.other.end("connection reset"))
        self._ended = True
        self._end_reason = None

    def lose(self) -> None:
        """This end loses the connection; the other one still gets what is on its way, and then a reset."""
        if not self._ended:
            self._reset_other()
            self.end("connection reset")

    def break_down(self) -> None:
        """Both ends lose the connection; bytes in transit are lost."""
        self.other.end("connection reset")
        self.end("connection reset")

    def _drop_queue(self) -> None:
        for part in self._queue:
            _unhold(part)
        self._queue.clear()
        self._queued_bytes = 0

    def _pump(self) -> None:
        while self._queue and not self._ended and (room := self._link.window_bytes - self._in_flight) > 0:
            if self._link.breaks_now():
                self.break_down()
                return
            data = self._take(self._link.segment_size(min(room, self._queued_bytes)))
            if data is None:
                return
            self._send(data)
        if self._queue or self._ended:
            return
        if self._closing:
            self._link.transmit(self, "finish", lambda: self.other._finish())
            self.end("closed")
        elif self._behind:
            self._behind = False
            self._link.call_soon(self.host, self._report_drained)

    def _send(self, data: bytes) -> None:
        size = len(data)
        self._in_flight += size
        self._link.transmit(self, f"{size} {crc32(data):08x}", partial(self.other._arrive, data))

    def _reset_other(self) -> None:
        self._link.transmit(self, "reset", lambda: self.other.end("connection reset by peer"))

    def _take(self, size: int) -> bytes | None:
        """The next `size` bytes of the queue; None if a file could not be read."""
        first = self._queue[0]
        if len(first) == size and isinstance(first, bytes):
            self._queue.popleft()
            self._queued_bytes -= size
            return first
        taken: list[bytes] = []
        while size:
            data = self._take_part(size)
            if data is None:
                return None
            taken.append(data)
            size -= len(data)
        return taken[0] if len(taken) == 1 else b"".join(taken)

    def _take_part(self, size: int) -> bytes | None:
        """The next `size` bytes of the queue, or fewer at a part's end."""
        part = self._queue.popleft()
        size = min(size, len(part))
        if isinstance(part, FileSlice):
            try:
                data = part.file.pread(size, part.position)
            except OSError as error:
                _unhold(part)
                self._reset_other()
                self.end(f"cannot read {part.file.path}: {error.strerror}")
                return None
            assert len(data) == size, f"{part} was cut short before it was sent"
            rest: bytes | FileSlice = FileSlice(part.file, part.position + size, part.size - size)
            if not len(rest):
                _unhold(part)
        else:
            data, rest = part[:size], part[size:]
        if len(rest):
            self._queue.appendleft(rest)
        self._queued_bytes -= size
        return data

    def _report_end(self) -> None:
        if self._receiver is not None and self._end_reason is not None:
            reason, self._end_reason = self._end_reason, None
            self._receiver.closed(reason)

    def _report_drained(self) -> None:
        if self._receiver is not None and not self._ended and not self._queue:
            self._receiver.drained()

    def _arrive(self, data: bytes) -> None:
        if self._ended:
            self._reset_other()
        elif self._closing:
            self._acknowledge(len(data))
        else:
            self._inbox.append(data)
            self._deliver()

    def _finish(self) -> None:
        self._peer_finished = True
        if self._closing:
            self.end("closed")
        elif self._paused:
            self._finished_while_paused()
        else:
            self._deliver()

    def _finished_while_paused(self) -> None:
        """Reports the end at once if nothing is unread; otherwise reports that the peer has finished."""
        if not self._paused or self._closing or self._ended or self._receiver is None:
            return
        if not self._inbox:
            self.end("closed by peer")
        elif self._left is not None:
            left, self._left = self._left, None
            left()

    def _deliver(self) -> None:
        if self._delivering or self._receiver is None:
            return
        self._delivering = True
        try:
            while self._inbox and self._is_reading():
                self._deliver_some(self._receiver)
        finally:
            self._delivering = False
        if self._peer_finished and self._is_reading():
            self.end("closed by peer")

    def _deliver_some(self, receiver: Receiver) -> None:
        data = self._inbox.popleft()
        room = receiver.buffer()
        assert len(room), "a receiver offered no room"
        size = min(len(room), len(data))
        room[:size] = data[:size]
        if size < len(data):
            self._inbox.appendleft(data[size:])
        self._acknowledge(size)
        receiver.received(size)

    def _acknowledge(self, size: int) -> None:
        """Acknowledges bytes together: less than half a window never holds up the sender."""
        self._unacknowledged += size
        if self._unacknowledged >= ACKNOWLEDGED_BYTES:
            taken, self._unacknowledged = self._unacknowledged, 0
            self._link.transmit(self, "", partial(self.other._taken, taken))

    def _is_reading(self) -> bool:
        return not (self._paused or self._closing or self._ended)

    def _taken(self, size: int) -> None:
        if not self._ended:
            self._in_flight -= size
            self._pump()


def _hold(part: FileSlice) -> None:
    if isinstance(part.file, SimFile):
        part.file.hold()


def _unhold(part: Part) -> None:
    if isinstance(part, FileSlice) and isinstance(part.file, SimFile):
        part.file.unhold()

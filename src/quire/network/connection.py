"""One client's connection: its requests, one after the other, and their responses in the same order.

At most one request of a connection is in progress. While it waits (for replicas, for data, for a commit) the connection
is not read, so what the client sends meanwhile stays on its side of the wire and takes no memory here. The same holds
while the client does not read its responses: what is queued for it is limited to `queued_bytes_pause` and one response.

    received -> frames -> handle -> bytes, at once          -> written with the others of this receive
                               |--> a Pending                -> parked: not read until it is completed
                               |--> None (acks=0)            -> nothing is written
                               |--> CloseConnection, a bug   -> responses so far are sent, the connection closed

A client that sends many requests at once gets responses to some of them, and to the rest after other clients had their
turn. `disconnected.py` handles what a client has sent before it disconnected, `idle_check.py` closes idle connections.

The server makes a Connection for each Transport it accepts; the Transport calls it as its Receiver.
"""

import logging

from quire.network import disconnected
from quire.network.connection_owner import ConnectionOwner
from quire.network.framing import BadFrame, FrameReader
from quire.network.handler import CloseConnection, ConnectionInfo, EncodedResponse
from quire.network.idle_check import IdleCheck
from quire.pending import Pending
from quire.seams import FileSlice, Part, Transport

_log = logging.getLogger("quire.network")

_WRITE_TOGETHER_BYTES = 64 * 1024
"""Responses to pipelined requests are collected up to this size before they are written."""

_TURN_REQUESTS = 64
"""How many requests of one connection are handled in one turn.

`_WRITE_TOGETHER_BYTES` of responses end a turn as well: they have taken as long as many small ones. So does the end of
the time slice that all connections share (`quire.network.turns`)."""


class Connection:
    __slots__ = (
        "_behind",
        "_disconnected",
        "_held_bytes",
        "_idle_check",
        "_last_queued_bytes",
        "_owner",
        "_paused",
        "_removed",
        "_served",
        "_transport",
        "active",
        "buffer",
        "ended",
        "ending",
        "frames",
        "info",
        "parked",
        "starved",
        "yielded",
    )

    def __init__(self, owner: ConnectionOwner, info: ConnectionInfo, transport: Transport) -> None:
        self.info = info
        self._owner = owner
        self._transport = transport
        self.frames = FrameReader(owner.pool, owner.limits.request_bytes_max, owner.clock.monotonic_ms)
        self.buffer = self.frames.buffer
        self.parked: Pending[EncodedResponse] | None = None
        """The request in progress, if its response comes later."""
        self._behind = False
        """The client has not read more than `queued_bytes_pause` of its responses."""
        self.starved = False
        """The next request needs memory that the server does not have now."""
        self.yielded = False
        """There may be more complete requests, but it is the turn of other connections."""
        self._served = 0
        """Requests that were handled in this turn, by receives before this one."""
        self._paused = False
        self.ending = False
        """No further request is handled; the transport closes when its queue is sent."""
        self._removed = False
        """The server has forgotten this connection."""
        self._disconnected = False
        """The client has disconnected: responses are dropped."""
        self.ended = False
        """The transport has ended: no more bytes come."""
        self._held_bytes = 0
        """Memory, not file slices, that is queued for this client at most."""
        self._last_queued_bytes = 0
        self.active = True
        """Something has happened since the last idle check."""
        self._idle_check = IdleCheck(self, owner)

    # --- The transport's side

    def received(self, size: int) -> None:
        """Handles requests until none is left, one has to wait, the client is behind or its turn is over."""
        owner = self._owner
        counters = owner.counters
        counters.bytes_in += size
        self.active = True
        if self._disconnected:
            disconnected.take_turn(self, owner, size)
            return
        frames = self.frames
        answers: list[Part] = []
        answers_bytes = 0
        served = self._served
        turn_ends_ms = 0.0
        failure: Exception | None = None
        try:
            frame = frames.next_frame(size)
            while frame is not None and not self.ending:
                more = frames.incomplete
                if more or turn_ends_ms:
                    # A client that sends one request at a time never gets here, and saves reading the clock.
                    now_ms = owner.clock.monotonic_ms()
                    if not turn_ends_ms:
                        turn_ends_ms = owner.turns.slice_end_ms(now_ms)
                    if now_ms >= turn_ends_ms:
                        frames.put_back(frame)
                        served = _TURN_REQUESTS
                        break
                counters.requests += 1
                answer = owner.handle(self.info, frame)
                if isinstance(answer, Pending):
                    if not answer.done:
                        self.parked = answer
                        answer.when_done(self._completed)
                        break
                    answer = answer.value
                if isinstance(answer, CloseConnection):
                    raise answer
                if answer:
                    answers += answer
                    answers_bytes += len(answer[0])
                    if len(answer) > 1 or answers_bytes > _WRITE_TOGETHER_BYTES:
                        self._write(answers)
                        if answers_bytes > _WRITE_TOGETHER_BYTES:
                            served = _TURN_REQUESTS
                        answers = []
                        answers_bytes = 0
                        if self._behind:
                            break
                served += 1
                if served >= _TURN_REQUESTS:
                    break
                if not more:
                    break
                frame = frames.next_frame()
        except (BadFrame, CloseConnection) as error:
            failure = error
        except Exception:
            self.fail_on_bug()
        if answers:
            self._write(answers)
        if failure is not None:
            self.fail(str(failure))
        if self.ending:
            self._close_if_answered()
        elif self.parked or self._behind:
            frames.shrink()
            self.pause_or_resume()
        elif served >= _TURN_REQUESTS:
            self._yield_turn()
        else:
            if served > 1:
                # If the receive filled all the room it had, another one follows before other connections have a turn.
                self._served = served if frames.is_full else 0
            if not frames.settle():
                self.wait_for_memory()
            elif self._paused:
                self.pause_or_resume()

    def drained(self) -> None:
        self.active = True
        self._count_queued(0, 0)
        if self._behind:
            self._behind = False
            self._continue()

    def closed(self, reason: str) -> None:
        self.ended = True
        _log.debug("connection %d from %s is closed: %s", self.info.connection_id, self.info.peer, reason)
        self._disconnect()

    def _disconnect(self) -> None:
        """The client has gone. If it has sent more than was received, that comes now, and then `closed`."""
        self._disconnected = True
        self._behind = False
        self._count_queued(0, 0)
        disconnected.proceed(self, self._owner)

    # --- The server's side

    def finish(self) -> None:
        """Closes as soon as the request in progress, if there is one, is answered and the response is sent."""
        self.ending = True
        self._close_if_answered()

    def abort(self) -> None:
        self.ending = True
        if self.ended:
            self.remove()
        else:
            self._transport.abort()

    def abandon_request(self) -> None:
        """Closes, and gives back the memory of the incomplete request at once."""
        held, came = self.frames.large_bytes, self.frames.unread_bytes
        self.fail(
            f"its request has stopped coming, or comes too slowly: others wait for the {held} bytes that it holds, "
            f"and {came} have come",
            "slow requests",
            now=True,
        )
        self.frames.release()

    def count_queued(self) -> int:
        """Counts the memory that is queued for this client again: it may have read some since the last response."""
        self._count_queued(self._transport.queued_bytes, 0)
        return self._held_bytes

    def drop_queue(self) -> None:
        """Closes, and drops what is queued."""
        self.fail(
            f"{self._held_bytes} bytes wait for it to read, and all clients together have reached the limit",
            "slow readers",
            now=True,
        )
        self._count_queued(0, 0)

    # --- The idle check's side

    def was_active(self) -> bool:
        """Whether anything has happened since the last call, or a request of a connected client is in progress."""
        queued = self._transport.queued_bytes
        in_progress = self.parked is not None and not self._disconnected
        active = self.active or in_progress or queued < self._last_queued_bytes
        self.active = False
        self._last_queued_bytes = queued
        return active

    @property
    def owes_bytes(self) -> bool:
        """Whether the client has not read a response, or not sent the rest of a request."""
        return bool(self._transport.queued_bytes) or self.frames.incomplete

    # --- Waiting and resuming

    def park(self, answer: Pending[EncodedResponse]) -> None:
        """Handles no other request until the response is there."""
        self.parked = answer
        answer.when_done(self._completed)

    def _completed(self, answer: EncodedResponse) -> None:
        self.parked = None
        self.active = True
        if isinstance(answer, CloseConnection):
            self.fail(str(answer))
        elif answer:
            self._write(answer)
        if self.ending:
            self._close_if_answered()
        else:
            self._continue()

    def _continue(self) -> None:
        if self.parked or self._behind or self.starved or self.yielded or self.ending:
            return
        if self._disconnected:
            disconnected.proceed(self, self._owner)
        elif self.frames.incomplete:
            self.received(0)
        else:
            # The usual end of a wait: the client has sent nothing else meanwhile.
            self._served = 0
            self.frames.release()
            self.pause_or_resume()

    def _yield_turn(self) -> None:
        self._served = 0
        self.yielded = True
        self.pause_or_resume()
        self._owner.turns.wait(self)

    def take_turn(self) -> None:
        self.yielded = False
        self._continue()

    def take_turn_disconnected(self) -> None:
        self.yielded = False
        if not self._removed:
            disconnected.take_turn(self, self._owner, 0)

    def wait_for_memory(self) -> None:
        self.starved = True
        self.pause_or_resume()
        self._owner.pool.wait(self, self.frames.wanted_bytes, self._memory_freed, proven=self.frames.is_proven)
        self._owner.memory_is_short()

    def _memory_freed(self) -> bool:
        if self.ending:
            return True
        self.starved = not self.frames.settle()
        self.pause_or_resume()
        return not self.starved

    def pause_or_resume(self) -> None:
        """Receives only while nothing keeps this connection from handling the next request."""
        pause = self.parked is not None or self._behind or self.starved or self.yielded
        if pause != self._paused:
            self._paused = pause
            if pause:
                self._transport.pause(self._disconnect)
            else:
                self._transport.resume()

    # --- Responses

    def _write(self, parts: list[Part]) -> None:
        if self._disconnected:
            return
        self._owner.counters.bytes_out += sum(map(len, parts))
        transport = self._transport
        transport.write(parts)
        queued = transport.queued_bytes
        if queued or self._held_bytes:
            self._count_queued(queued, sum(len(part) for part in parts if not isinstance(part, FileSlice)))
            if self._owner.counters.queued_bytes > self._owner.limits.queued_bytes_max:
                self._owner.queues_are_full()
            if queued > self._owner.limits.queued_bytes_pause:
                self._behind = True

    def _count_queued(self, queued: int, added: int) -> None:
        held = min(queued, self._held_bytes + added)
        self._owner.counters.queued_bytes += held - self._held_bytes
        self._held_bytes = held
        self._last_queued_bytes = queued

    # --- The end

    def _close_if_answered(self) -> None:
        if self.parked is not None:
            return
        if self._disconnected:
            self.remove()
        else:
            self.frames.release()
            self._transport.close()

    def abandon(self) -> None:
        """Ends the wait for a response that the client would have to read: its timer, its place in a queue."""
        if self.parked is not None:
            self.parked.abandon()
            self.parked = None

    def remove(self) -> None:
        """Releases what the connection holds, and lets the server forget it."""
        if self._removed:
            return
        self._removed = self.ending = True
        self._idle_check.cancel()
        self.abandon()
        if self.starved:
            self._owner.pool.stop_waiting(self)
        self.frames.release()
        if not self.ended:
            self._transport.abort()
        self._owner.connection_closed(self)

    def fail(self, reason: str, kind: str | None = None, *, now: bool = False) -> None:
        self._owner.throttled_log.warning(
            "closing the connection from %s: %s", self.info.peer, reason, kind=f"closing a connection: {kind or reason}"
        )
        self.ending = True
        if now:
            self.abort()

    def fail_on_bug(self) -> None:
        self._owner.throttled_log.exception(
            "closing the connection from %s: its request could not be handled", self.info.peer
        )
        self.ending = True

"""One client's connection: its requests, one after the other, and their answers in the same order.

At most one request of a connection is in progress. While it waits (for replicas, for data, for a commit) the connection
is not read, so what the client sends meanwhile stays on its side of the wire and costs nothing here. The same holds
while the client does not take its answers: what is queued for it is bounded by `queued_bytes_pause` and one answer.

    received -> frames -> handle -> bytes, at once          -> written with the others of this receive
                               |--> a Pending                -> parked: not read until it is completed
                               |--> None (acks=0)            -> nothing is written
                               |--> CloseConnection, a bug   -> answers so far are sent, the connection closed

A client that sends many requests at once is answered some of them, and the rest when the others had their turn.

A client that has gone may have said something before: that it leaves its group, or records that it wants no answer
for. Such requests, if they had come whole, are handled in their order, as Kafka does it. Requests that only ask for
something are skipped, and what waits only to be answered is not waited for. The connection counts until all is done.

The server makes a Connection for each Transport it accepts; the Transport calls it as its Receiver.
"""

import logging
from collections.abc import Callable
from typing import Protocol

from quire.network.buffers import BufferPool
from quire.network.framing import BadFrame, FrameReader
from quire.network.handler import Answer, CloseConnection, ConnectionInfo, Handle
from quire.network.limits import Counters, Limits
from quire.network.turns import Turns
from quire.pending import Pending
from quire.seams import Clock, FileSlice, Part, Timer, Transport
from quire.throttled_log import ThrottledLog

_log = logging.getLogger("quire.network")

_WRITE_TOGETHER_BYTES = 64 * 1024
"""Answers to pipelined requests are collected up to this size before they are written."""

_TURN_REQUESTS = 64
"""How many requests of one connection are answered before the others have their turn.

`_WRITE_TOGETHER_BYTES` of answers end a turn as well: they have taken as long as many small ones. So does the end of
the time slice that all of them share (`quire.network.turns`)."""

_LOOK_AGAIN_MS = 60_000
"""How often a connection without a limit on its idle time finds out whether it has one now."""


class Owner(Protocol):
    """What a connection needs of its server."""

    limits: Limits
    counters: Counters
    clock: Clock
    complaints: ThrottledLog
    pool: BufferPool
    turns: Turns
    handle: Handle
    matters: Callable[[memoryview], bool]
    """Whether a request is worth handling although its client has gone."""

    def connection_closed(self, connection: "Connection") -> None: ...

    def memory_is_short(self) -> None:
        """A connection waits for memory."""
        ...

    def queues_are_full(self) -> None:
        """More than `queued_bytes_max` waits for clients to read it."""
        ...


class Connection:
    __slots__ = (
        "_active",
        "_behind",
        "_ended",
        "_ending",
        "_gone",
        "_held_bytes",
        "_idle_since_ms",
        "_idle_timer",
        "_last_queued_bytes",
        "_over",
        "_owner",
        "_parked",
        "_paused",
        "_served",
        "_transport",
        "_yielded",
        "buffer",
        "frames",
        "info",
        "starved",
    )

    def __init__(self, owner: Owner, info: ConnectionInfo, transport: Transport) -> None:
        self.info = info
        self._owner = owner
        self._transport = transport
        self.frames = FrameReader(owner.pool, owner.limits.request_bytes_max, owner.clock.monotonic_ms)
        self.buffer = self.frames.buffer
        self._parked: Pending[Answer] | None = None
        """A request is in progress; somebody will complete it."""
        self._behind = False
        """The client has more to take than `queued_bytes_pause`."""
        self.starved = False
        """The next request needs memory that the server does not have now."""
        self._yielded = False
        """There may be more requests at hand, but it is the others' turn."""
        self._served = 0
        """Requests that were answered in this turn, by receives before this one."""
        self._paused = False
        self._ending = False
        """No further request is served; the transport closes when its queue is sent."""
        self._over = False
        """The server knows it no more."""
        self._gone = False
        """The client has gone: answers go nowhere."""
        self._ended = False
        """The transport has ended: nothing more comes."""
        self._held_bytes = 0
        """Memory, not file slices, that is queued for this client at most."""
        self._last_queued_bytes = 0
        self._active = True
        """Something has happened since the last look at it."""
        self._idle_since_ms = 0.0
        self._idle_timer: Timer = owner.clock.call_later(0, self._check_idle)

    # The transport's side

    def received(self, size: int) -> None:
        """Answers the requests at hand until none is left, one has to wait, the client is behind or had its turn."""
        owner = self._owner
        counters = owner.counters
        counters.bytes_in += size
        self._active = True
        if self._gone:
            self._hear(size)
            return
        frames = self.frames
        answers: list[Part] = []
        answers_bytes = 0
        served = self._served
        turn_ends_ms = 0.0
        failure: Exception | None = None
        try:
            frame = frames.next_frame(size)
            while frame is not None and not self._ending:
                more = frames.incomplete
                if more or turn_ends_ms:
                    # Who sends one request at a time never gets here, and does not pay for a look at the clock.
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
                        self._parked = answer
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
            self._fail_on_bug()
        if answers:
            self._write(answers)
        if failure is not None:
            self._fail(str(failure))
        if self._ending:
            self._close_if_answered()
        elif self._parked or self._behind:
            frames.shrink()
            self._read_or_not()
        elif served >= _TURN_REQUESTS:
            self._yield_turn()
        else:
            if served > 1:
                # Where all the room was filled, another receive follows before anybody else has a turn.
                self._served = served if frames.is_full else 0
            if not frames.settle():
                self._wait_for_memory()
            elif self._paused:
                self._read_or_not()

    def drained(self) -> None:
        self._active = True
        self._count_queued(0, 0)
        if self._behind:
            self._behind = False
            self._go_on()

    def closed(self, reason: str) -> None:
        self._gone = self._ended = True
        self._behind = False
        self._count_queued(0, 0)
        _log.debug("connection %d from %s is closed: %s", self.info.connection_id, self.info.peer, reason)
        self._hear_out()

    # The server's side

    def finish(self) -> None:
        """Closes once the request in progress, if any, is answered and the answer sent."""
        self._ending = True
        self._close_if_answered()

    def abort(self) -> None:
        self._ending = True
        if self._ended:
            self._let_go()
        else:
            self._transport.abort()

    def give_request_up(self) -> None:
        """Closes, and gives the memory of the request that was coming back at once."""
        held, came = self.frames.large_bytes, self.frames.unread_bytes
        self._fail(
            f"its request has stopped coming, or comes too slowly: others wait for the {held} bytes that it holds, "
            f"and {came} have come",
            "slow requests",
            now=True,
        )
        self.frames.release()

    def count_queued(self) -> int:
        """Memory that is queued for this client, counted anew: it has taken some since the last answer, perhaps."""
        self._count_queued(self._transport.queued_bytes, 0)
        return self._held_bytes

    def drop_queue(self) -> None:
        """Closes, and forgets what is queued."""
        self._fail(
            f"{self._held_bytes} bytes wait for it to read, and all clients together have reached the limit",
            "slow readers",
            now=True,
        )
        self._count_queued(0, 0)

    # Waiting, and going on

    def _completed(self, answer: Answer) -> None:
        self._parked = None
        self._active = True
        if isinstance(answer, CloseConnection):
            self._fail(str(answer))
        elif answer:
            self._write(answer)
        if self._ending:
            self._close_if_answered()
        else:
            self._go_on()

    def _go_on(self) -> None:
        if self._parked or self._behind or self.starved or self._yielded or self._ending:
            return
        if self._gone:
            self._hear_out()
        elif self.frames.incomplete:
            self.received(0)
        else:
            # The usual end of a wait: the client has sent nothing else meanwhile.
            self._served = 0
            self.frames.release()
            self._read_or_not()

    def _yield_turn(self) -> None:
        self._served = 0
        self._yielded = True
        self._read_or_not()
        self._owner.turns.wait(self)

    def take_turn(self) -> None:
        self._yielded = False
        self._go_on()

    def take_turn_of_gone(self) -> None:
        self._yielded = False
        if not self._over:
            self._hear(0)

    def _wait_for_memory(self) -> None:
        self.starved = True
        self._read_or_not()
        self._owner.pool.wait(self, self.frames.wanted_bytes, self._memory_freed, proven=self.frames.is_proven)
        self._owner.memory_is_short()

    def _memory_freed(self) -> bool:
        if self._ending:
            return True
        self.starved = not self.frames.settle()
        self._read_or_not()
        return not self.starved

    def _read_or_not(self) -> None:
        wanted = self._parked is not None or self._behind or self.starved or self._yielded
        if wanted != self._paused:
            self._paused = wanted
            if wanted:
                self._transport.pause(self._client_left)
            else:
                self._transport.resume()

    # Answers

    def _write(self, parts: list[Part]) -> None:
        if self._gone:
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

    # Ends

    def _close_if_answered(self) -> None:
        if self._parked is not None:
            return
        if self._gone:
            self._let_go()
        else:
            self.frames.release()
            self._transport.close()

    def _client_left(self) -> None:
        """The client has gone, and has sent more than was received: that comes now, and then the end."""
        self._gone = True
        self._behind = False
        self._count_queued(0, 0)
        self._hear_out()

    def _hear_out(self) -> None:
        """Goes on with what had come of a client that has gone, and lets go of it when there is nothing more."""
        more = self.frames.has_frame
        if self._ending or (self._ended and not more):
            self._let_go()
        elif self._parked is not None and self._parked.on_abandoned is None:
            # Only what the node is doing anyway is waited for: it ends by itself, and keeps the requests in order.
            self._read_or_not()
        elif not more:
            self._abandon()
            self._receive_rest()
        elif not self._yielded:
            self._abandon()
            self._yielded = True
            if self._owner.turns.wait_gone(self):
                self._read_or_not()
            else:
                self._let_go()

    def _receive_rest(self) -> None:
        if self._yielded or self.starved:
            return
        if self.frames.settle():
            self._read_or_not()
        else:
            self._wait_for_memory()

    def _hear(self, size: int) -> None:
        """One turn of a client that has gone, after `size` more bytes of it were received."""
        frames, owner = self.frames, self._owner
        try:
            frame = frames.next_frame(size)
            now_ms = owner.clock.monotonic_ms()
            until_ms = owner.turns.slice_end_ms(now_ms)
            while frame is not None and not self._ending:
                if owner.matters(frame):
                    owner.counters.requests += 1
                    answer = owner.handle(self.info, frame)
                    if isinstance(answer, Pending):
                        if not answer.done:
                            self._parked = answer
                            answer.when_done(self._completed)
                            break
                        answer = answer.value
                    if isinstance(answer, CloseConnection):
                        raise answer
                if owner.clock.monotonic_ms() >= until_ms:
                    break
                frame = frames.next_frame()
        except (BadFrame, CloseConnection) as error:
            self._fail(str(error))
        except Exception:
            self._fail_on_bug()
        self._hear_out()

    def _abandon(self) -> None:
        """Whatever waits for this client's sake, timers and places in queues, need not wait any longer."""
        if self._parked is not None:
            self._parked.abandon()
            self._parked = None

    def _let_go(self) -> None:
        if self._over:
            return
        self._over = self._ending = True
        self._idle_timer.cancel()
        self._abandon()
        if self.starved:
            self._owner.pool.stop_waiting(self)
        self.frames.release()
        if not self._ended:
            self._transport.abort()
        self._owner.connection_closed(self)

    def _fail(self, reason: str, kind: str | None = None, *, now: bool = False) -> None:
        self._owner.complaints.warning(
            "closing the connection from %s: %s", self.info.peer, reason, kind=f"closing a connection: {kind or reason}"
        )
        self._ending = True
        if now:
            self.abort()

    def _fail_on_bug(self) -> None:
        self._owner.complaints.exception(
            "closing the connection from %s: its request could not be handled", self.info.peer
        )
        self._ending = True

    def _check_idle(self) -> None:
        """Looks four times per idle time, so that a request only has to leave a mark, not the time."""
        now = self._owner.clock.monotonic_ms()
        queued = self._transport.queued_bytes
        in_progress = self._parked is not None and not self._gone
        if self._active or in_progress or queued < self._last_queued_bytes:
            self._active = False
            self._idle_since_ms = now
        self._last_queued_bytes = queued
        # Room that was asked for, and then nothing came.
        self.frames.shrink()
        idle_ms_max = self._owner.limits.idle_ms_max
        if idle_ms_max < 0 or now - self._idle_since_ms < idle_ms_max:
            look_again_ms = idle_ms_max / 4 if idle_ms_max >= 0 else _LOOK_AGAIN_MS
            self._idle_timer = self._owner.clock.call_later(max(look_again_ms, 1), self._check_idle)
            return
        log = self._owner.complaints.warning if queued or self.frames.incomplete else _log.debug
        log("closing the connection from %s: idle for %d ms", self.info.peer, idle_ms_max)
        self.abort()

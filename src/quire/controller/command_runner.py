"""Runs the commands of the active controller: a manager makes records and a response, the runner writes and answers.

The runner keeps the controller's image. It is ahead of the committed one by the records that are written but not yet
committed, so that a command sees the effects of the one before it without waiting for the disk. A response is sent when
everything that it may depend on is committed. Commands that change many things run in turns; see `Portions`.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from quire.controller.controller_result import ControllerResult, Portions
from quire.controller.refusals import no_room, not_controller, refuse
from quire.controller.write_queue import WriteQueue
from quire.metadata.delta import ImageDelta
from quire.metadata.features import record_version
from quire.metadata.image import ClusterImage
from quire.metadata.replay import replay
from quire.pending import Pending, completed
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.schema import Message
from quire.raft.metadata_log import MetadataLog
from quire.raft.snapshot_taker import VersionedRecord
from quire.seams import Clock
from quire.turns import Turns

logger = logging.getLogger("quire.controller")

R = TypeVar("R")

_TURN_MS = 3.0
_TURN_PORTIONS = 1_000
"""The longest turn of a command with many portions, in time and in portions."""


class CommandRunner:
    """Lives for one term of leadership; `stop` ends it."""

    def __init__(self, log: MetadataLog, image: ClusterImage, clock: Clock) -> None:
        """`image` is the runner's own copy of the committed image."""
        self.image = image
        self._log = log
        self._clock = clock
        self._queue = WriteQueue(committed_offset=image.offset + 1)
        self._turns = Turns(clock, per_turn=1)
        """Commands with many portions share these: one of them runs in each round of the event loop."""
        self._unwritten: list[VersionedRecord] = []
        """The records of the present turn. The image has them already; they become one batch when the turn ends."""
        self._stopped = False

    @property
    def next_offset(self) -> int:
        """The offset of the next record."""
        return self._log.next_offset + len(self._unwritten)

    @property
    def waits_for_room(self) -> bool:
        """Whether the disk of the metadata log is full."""
        return self._log.waits_for_room

    def run(self, manage: Callable[[ClusterImage], ControllerResult[R]], request: Message) -> Pending[R]:
        assert not self._stopped, "the term has ended"
        return self._finish(manage(self.image), request)

    def run_in_turns(self, manage: Callable[[ClusterImage], Portions[R]], request: Message) -> Pending[R]:
        """For a request that asks for many things, each of which is done or refused on its own."""
        assert not self._stopped, "the term has ended"
        answer: Pending[R] = Pending()
        command = _LongCommand(manage(self.image), request, answer)
        if len(self._turns):
            self._turns.add(lambda: self._take_turn(command))
        else:
            self._take_turn(command)
        return answer

    def run_to_the_end(self, manage: Callable[[ClusterImage], Portions[R]], request: Message) -> Pending[R]:
        """For one change with many consequences: it starts at once, and is not refused after its first portion."""
        assert not self._stopped, "the term has ended"
        answer: Pending[R] = Pending()
        self._take_turn(_LongCommand(manage(self.image), request, answer, is_whole=True))
        return answer

    def write_to_the_end(self, manage: Callable[[ClusterImage], Portions[None]]) -> None:
        """The same for what no request asks for. It is never refused."""
        if not self._stopped:
            self._take_turn(_LongCommand(manage(self.image), None, Pending(), is_whole=True))

    def write(self, records: Sequence[Message]) -> None:
        """Appends the records to the log as one batch and applies them to the image at once."""
        if records:
            self._log.append(self._versioned(records), self._clock.now_ms())
            self._apply(records)

    def when_written(self) -> Pending[None]:
        """Completes when everything written so far is committed, and its responses are sent; or when the term ends."""
        return self._queue.answer(None, self._log.next_offset, lambda: None)

    def committed(self, offset: int) -> None:
        """Everything below `offset` is committed and published: sends the responses that waited for it."""
        self._queue.committed(offset)

    def stop(self) -> None:
        """Refuses everything that waits: the next leader decides about its records."""
        self._stopped = True
        self._queue.refuse_all()

    def _versioned(self, records: Sequence[Message]) -> list[VersionedRecord]:
        level = self.image.metadata_version
        return [(record, record_version(record, level)) for record in records]

    def _apply(self, records: Sequence[Message]) -> None:
        delta = ImageDelta()
        for record in records:
            replay(self.image, record, delta)

    def _finish(self, result: ControllerResult[R], request: Message) -> Pending[R]:
        if result.records:
            if self._log.waits_for_room:
                return completed(refuse(request, no_room()))
            self.write(result.records)
        return self._queue.answer(result.response, self._log.next_offset, lambda: refuse(request, not_controller()))

    def _take_turn(self, command: "_LongCommand[R]") -> None:
        """Writes the records of some portions, then lets other requests run."""
        if self._stopped:
            command.refuse(not_controller())
            return
        refusal: ApiError | None = None
        is_done = True
        try:
            is_done = self._run_portions(command)
        except ApiError as error:
            refusal = error
        except Exception:
            logger.exception("a request failed unexpectedly")
            refusal = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the controller failed on this request")
        self._write_portions()
        if refusal is not None:
            command.refuse(refusal)
        elif is_done:
            self._answer(command)
        else:
            self._turns.add(lambda: self._take_turn(command))

    def _run_portions(self, command: "_LongCommand[R]") -> bool:
        """Runs the next portions, and returns whether these were the last."""
        until_ms = self._clock.monotonic_ms() + _TURN_MS
        portions_left = _TURN_PORTIONS
        refusal: ApiError | None = None
        try:
            while refusal is not None or (portions_left and self._clock.monotonic_ms() < until_ms):
                portion = next(command.portions) if refusal is None else command.portions.throw(refusal)
                refusal = no_room() if portion and self._log.waits_for_room and command.may_be_refused else None
                if refusal is None:
                    self._add_portion(command, portion)
                    portions_left -= 1
        except StopIteration as end:
            command.response = end.value
            return True
        return False

    def _add_portion(self, command: "_LongCommand[R]", portion: list[Message]) -> None:
        if portion:
            self._unwritten += self._versioned(portion)
            self._apply(portion)
            command.has_written = True

    def _write_portions(self) -> None:
        records, self._unwritten = self._unwritten, []
        if records:
            self._log.append(records, self._clock.now_ms())

    def _answer(self, command: "_LongCommand[R]") -> None:
        request, response = command.request, command.response
        if request is None:
            return
        assert response is not None, "a request has a response"
        if self._log.waits_for_room and not command.has_written:
            # Nothing of it is in the log, and the log may not move for a long time. But the response may rest on
            # records that wait for room, and may never be committed: a topic that was just created or deleted.
            rests_on_committed = self._queue.is_committed(self._log.next_offset)
            command.answer.complete(response if rests_on_committed else refuse(request, no_room()))
        else:
            self._finish(ControllerResult(response), request).when_done(command.answer.complete)


class _LongCommand(Generic[R]):
    __slots__ = ("answer", "has_written", "is_whole", "portions", "request", "response")

    def __init__(
        self, portions: Portions[R], request: Message | None, answer: Pending[R], *, is_whole: bool = False
    ) -> None:
        """A `whole` command is not refused after its first portion; one without a request is never refused."""
        self.portions = portions
        self.request = request
        self.answer = answer
        self.is_whole = is_whole
        self.has_written = False
        self.response: R | None = None

    @property
    def may_be_refused(self) -> bool:
        return self.request is not None and not (self.is_whole and self.has_written)

    def refuse(self, error: ApiError) -> None:
        if self.request is not None:
            self.answer.complete(refuse(self.request, error))

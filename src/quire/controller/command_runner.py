"""Runs the commands of the active controller: a manager makes records and a response, the runner writes and answers.

The runner keeps the controller's image. It is ahead of the committed one by the records that are written but not yet
committed, so that a command sees the effects of the one before it without waiting for the disk. A response is sent
when everything that it may rest on is committed. Commands that change many things run in turns; see `Portions`.
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
from quire.seams import Clock
from quire.turns import Turns

logger = logging.getLogger("quire.controller")

R = TypeVar("R")

_TURN_MS = 5.0
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
        self._stopped = False

    def run(self, manage: Callable[[ClusterImage], ControllerResult[R]], request: Message) -> Pending[R]:
        assert not self._stopped, "the term has ended"
        return self._finish(manage(self.image), request)

    def run_in_turns(self, manage: Callable[[ClusterImage], Portions[R]], request: Message) -> Pending[R]:
        assert not self._stopped, "the term has ended"
        answer: Pending[R] = Pending()
        command = _LongCommand(manage(self.image), answer, request)
        if len(self._turns):
            self._turns.add(lambda: self._take_turn(command))
        else:
            self._take_turn(command)
        return answer

    def write(self, records: Sequence[Message]) -> None:
        """Appends the records to the log as one batch and applies them to the image at once."""
        if not records:
            return
        level = self.image.metadata_version
        versioned = [(record, record_version(record, level)) for record in records]
        self._log.append(versioned, self._clock.now_ms())
        delta = ImageDelta()
        for record in records:
            replay(self.image, record, delta)

    def committed(self, offset: int) -> None:
        """Everything below `offset` is committed and published: sends the responses that waited for it."""
        self._queue.committed(offset)

    def stop(self) -> None:
        """Refuses everything that waits: what becomes of its records is up to the next leader."""
        self._stopped = True
        self._queue.refuse_all()

    def _finish(self, result: ControllerResult[R], request: Message) -> Pending[R]:
        if result.records:
            if self._log.waits_for_room:
                return completed(refuse(request, no_room()))
            self.write(result.records)
        return self._queue.answer(result.response, self._log.next_offset, lambda: refuse(request, not_controller()))

    def _take_turn(self, command: "_LongCommand[R]") -> None:
        """Writes the records of some portions, then lets other requests run."""
        if self._stopped:
            command.answer.complete(refuse(command.request, not_controller()))
            return
        try:
            records, response = self._next_records(command.portions)
            self.write(records)
        except Exception:
            logger.exception("a request failed unexpectedly")
            failure = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the controller failed on this request")
            command.answer.complete(refuse(command.request, failure))
            return
        command.has_written = command.has_written or bool(records)
        if response is None:
            self._turns.add(lambda: self._take_turn(command))
        elif self._log.waits_for_room and not command.has_written:
            # Nothing of it is in the log, and the log may not move for a long time. But the response may rest on
            # records that wait for room, and may never be committed: a topic that was just created or deleted.
            rests_on_committed = self._queue.is_committed(self._log.next_offset)
            command.answer.complete(response if rests_on_committed else refuse(command.request, no_room()))
        else:
            self._finish(ControllerResult(response), command.request).when_done(command.answer.complete)

    def _next_records(self, portions: Portions[R]) -> tuple[list[Message], R | None]:
        """The records of the next portions, and the response if these were the last."""
        until_ms = self._clock.monotonic_ms() + _TURN_MS
        portions_left = _TURN_PORTIONS
        records: list[Message] = []
        refusal: ApiError | None = None
        try:
            while refusal is not None or (portions_left and self._clock.monotonic_ms() < until_ms):
                portion = next(portions) if refusal is None else portions.throw(refusal)
                refusal = no_room() if portion and self._log.waits_for_room else None
                if refusal is None:
                    records += portion
                    portions_left -= 1
        except StopIteration as end:
            return records, end.value
        return records, None


class _LongCommand(Generic[R]):
    __slots__ = ("answer", "has_written", "portions", "request")

    def __init__(self, portions: Portions[R], answer: Pending[R], request: Message) -> None:
        self.portions = portions
        self.answer = answer
        self.request = request
        self.has_written = False

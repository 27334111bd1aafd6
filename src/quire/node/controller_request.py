"""A request to the active controller that is sent until it is answered, across changes of controller.

An attempt fails if no controller is known, the connection is lost, or the node asked is no longer the active
controller. The next attempt follows after a back-off, or at once when another node becomes the controller. At the
deadline the answer is a refusal with REQUEST_TIMED_OUT.

If a connection is lost or the controller changes, the request may have been carried out although its answer was lost.
It is sent again all the same, as Apache Kafka's brokers do, so a topic that a request has created may be answered with
TOPIC_ALREADY_EXISTS, a voter that it has added with DUPLICATE_VOTER, and one that it has removed with VOTER_NOT_FOUND.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from quire.client.backoff import Backoff
from quire.client.errors import UnsupportedError
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.seams import Clock, Random, Timer

R = TypeVar("R")

FIRST_BACKOFF_MS = 20.0
LONGEST_BACKOFF_MS = 500.0

_NOT_CONTROLLER = (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER)
"""The latter is the answer of the metadata log, to requests about its voters and its version."""

_LISTS_WITH_ERRORS = ("topics", "responses", "results")


class ControllerRequest(Generic[R]):
    """`answer` is completed once, with a response or the refusal."""

    __slots__ = (
        "_attempt",
        "_backoff",
        "_clock",
        "_deadline_ms",
        "_number",
        "_refuse",
        "_timer",
        "answer",
        "was_answered",
    )

    def __init__(
        self,
        attempt: Callable[[], Pending[R | Exception]],
        refuse: Callable[[ApiError], R],
        timeout_ms: float,
        clock: Clock,
        random: Random,
    ) -> None:
        """`attempt` sends the request to the node that is the active controller now."""
        self._attempt = attempt
        self._refuse = refuse
        self._clock = clock
        self._backoff = Backoff(random, FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS)
        self._deadline_ms = clock.monotonic_ms() + timeout_ms
        self._timer: Timer | None = None
        self._number = 0
        """Of the attempt whose outcome counts: a late outcome of an earlier one does not."""
        self.answer: Pending[R] = Pending()
        self.was_answered = False
        """Whether the answer is that of a controller."""

    def send(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._number += 1
        number = self._number
        attempt = self._attempt()
        if not attempt.done:
            # A controller that does not answer; the client does not wait for it longer than it said.
            self._timer = self._clock.call_later(self._left_ms(), self._time_out)
        attempt.when_done(lambda outcome: self._attempted(number, outcome))

    def cancel(self) -> None:
        """The node stops."""
        self._complete(self._refuse(ApiError(ErrorCode.NOT_CONTROLLER, "this node is stopping")))

    @property
    def waits_to_retry(self) -> bool:
        return self._number == 0

    def _attempted(self, number: int, outcome: R | Exception) -> None:
        if number != self._number or self.answer.done:
            return
        if isinstance(outcome, UnsupportedError):
            self._complete(self._refuse(ApiError(ErrorCode.UNSUPPORTED_VERSION, str(outcome))))
        elif isinstance(outcome, Exception) or says_not_controller(outcome):
            self._retry_later()
        else:
            self.was_answered = True
            self._complete(outcome)

    def _retry_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._number = 0
        left_ms = self._left_ms()
        delay_ms = self._backoff.next_ms()
        if delay_ms < left_ms:
            self._timer = self._clock.call_later(delay_ms, self.send)
        else:
            self._timer = self._clock.call_later(left_ms, self._time_out)

    def _left_ms(self) -> float:
        return max(0.0, self._deadline_ms - self._clock.monotonic_ms())

    def _time_out(self) -> None:
        self._complete(self._refuse(ApiError(ErrorCode.REQUEST_TIMED_OUT, "no active controller answered in time")))

    def _complete(self, answer: R) -> None:
        self._number = -1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.answer.complete_once(answer)


def says_not_controller(response: object) -> bool:
    """Whether the node that was asked does not lead the metadata quorum, or lost it while it worked on the request."""
    if getattr(response, "error_code", ErrorCode.NONE) in _NOT_CONTROLLER:
        return True
    return any(
        getattr(part, "error_code", ErrorCode.NONE) == ErrorCode.NOT_CONTROLLER
        for name in _LISTS_WITH_ERRORS
        for part in getattr(response, name, None) or ()
    )

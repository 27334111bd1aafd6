"""The responses of one connection that come later than the next request is handled, in the order of the requests.

A write that is in the log and waits for other replicas need not hold up the next write of the same client: the leader
appends that one while the followers copy the first, as a client that sends several requests at once expects. Such a
request returns a `Pending` whose `holds_up_next` is false. Only requests for which `may_follow` is true are handled
behind it, so a client that asks for something after a write still gets an answer of after that write.
"""

from quire.network.handler import EncodedResponse
from quire.pending import Pending

LATE_MAX = 5
"""As many as an idempotent producer has in flight, and as a partition remembers of it."""


class LateAnswers:
    __slots__ = ("answers",)

    def __init__(self) -> None:
        self.answers: list[Pending[EncodedResponse]] = []
        """In the order of their requests; few, so that a list is smaller and as fast as a queue."""

    @property
    def is_full(self) -> bool:
        return len(self.answers) >= LATE_MAX

    def add(self, answer: Pending[EncodedResponse]) -> None:
        self.answers.append(answer)

    def take_done(self) -> list[EncodedResponse]:
        """The responses that may be sent now, because all earlier ones are done."""
        done = []
        while self.answers and self.answers[0].done:
            done.append(self.answers.pop(0).value)
        return done

    def abandon(self) -> None:
        """Ends the waits, as nobody will read the responses."""
        abandoned, self.answers = self.answers, []
        for answer in abandoned:
            answer.abandon()

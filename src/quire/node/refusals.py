"""Logs the requests of other nodes that this node refuses. A line names the request, sender, reason and remedy.

The sender gets Kafka's error, which has no room for a reason. Dispatch wraps the handlers of the requests that only
nodes send in `watch`, which reads the error from the response, whatever part of the node refused. There is
one line a minute for each sender, API and error, so a peer that repeats its request does not fill the log.
"""

import logging
from collections.abc import Callable
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from quire.node.context import Context
from quire.node.refusal_reasons import ADVICE, EXPECTED, is_routine, reason_for, sender_id
from quire.node.slices import Work
from quire.pending import Pending
from quire.protocol import uuids
from quire.protocol.errors import ApiError, ErrorCode
from quire.raft.replicas import ReplicaKey
from quire.throttled_log import ThrottledLog

if TYPE_CHECKING:
    from quire.node.node import Node

log = logging.getLogger("quire.requests")

Handle = Callable[["Node", Context, Any], Any]

REASON_MAX = 500
"""Names in a request may be very long."""


class Refusals:
    __slots__ = ("_log", "_node", "_other_directories")

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._log = ThrottledLog(log, node.clock, few=1)
        self._other_directories: dict[int, bytes] = {}
        """By the ids of voters: the directory for which a line was logged last."""

    def watch(self, api: str, handle: Handle) -> Handle:
        """The same handler, which logs what it refuses."""

        def watched(node: "Node", context: Context, request: Any) -> Any:
            peer = context.client_address  # The connection reuses its context.

            def note(response: Any) -> Any:
                self._note(api, request, peer, response)
                return response

            try:
                response = handle(node, context, request)
            except ApiError as error:
                note(error)
                raise
            if response.__class__ is GeneratorType:
                return _watch_work(response, note)
            return response.then(note) if isinstance(response, Pending) else note(response)

        return watched

    def refused(self, api: str, sender: int | None, peer: str, error: ApiError) -> None:
        """`sender` is the id of the node, if the request names one."""
        code = error.code
        node = "" if sender is None or sender < 0 else f"node {sender}"
        who = f"{node} at {peer}" if node else peer
        advice = ADVICE.get(code, "")
        say = self._log.info if code in EXPECTED else self._log.warning
        say(
            "refused %s from %s with %s: %s%s",
            api,
            who,
            code.name,
            error.message[:REASON_MAX] or "it does not fit the state of this cluster",
            f"; {advice}" if advice else "",
            kind=f"refused {api} from {node or 'an unknown sender'} with {code.name}",
        )

    def candidate(self, candidate: ReplicaKey, peer: str) -> None:
        """A node asks for votes. As in Kafka any node may get them: this node's voters may be out of date."""
        voters = self._node.metadata.log.voters
        if len(voters) and not voters.includes(candidate):
            self._log.info(
                "node %d at %s asks for votes, and is not a voter as far as this node knows: it was removed, or added "
                "lately; if it should vote, add it with `quire quorum add`",
                candidate.id,
                peer,
                kind=f"node {candidate.id} asks for votes",
            )

    def follower(self, replica: ReplicaKey, peer: str) -> None:
        """A node fetches the metadata log. With another directory than the voter's it counts as an observer."""
        voter = self._node.metadata.log.voters.get(replica.id)
        if (
            voter is None
            or voter.key.matches(replica)
            or self._other_directories.get(replica.id) == (replica.directory_id)
        ):
            return
        self._other_directories[replica.id] = replica.directory_id
        log.warning(
            "node %d at %s has directory %s, and voter %d has %s: it follows as an observer and does not vote; if its "
            "disk was emptied, remove the voter and add it again (`quire quorum remove`, `quire quorum add`)",
            replica.id,
            peer,
            uuids.to_text(replica.directory_id),
            replica.id,
            uuids.to_text(voter.key.directory_id),
        )

    def _note(self, api: str, request: Any, peer: str, response: Any) -> None:
        code = response.code if isinstance(response, ApiError) else _error_of(response)
        if is_routine(api, request, code):
            return
        if isinstance(response, ApiError):
            reason = response.message
        else:
            reason = getattr(response, "error_message", None) or reason_for(self._node, api, request, code)
        self.refused(api, sender_id(api, request), peer, ApiError(code, reason))


def _watch_work(work: Work[Any], note: Callable[[Any], Any]) -> Work[Any]:
    try:
        response = yield from work
    except ApiError as error:
        note(error)
        raise
    return note(response)


def _error_of(response: Any) -> ErrorCode:
    """The error of a response, or of its only partition."""
    if getattr(response, "error_code", ErrorCode.NONE) != ErrorCode.NONE:
        return ErrorCode(response.error_code)
    topics = getattr(response, "topics", None) or getattr(response, "responses", None)
    partitions = getattr(topics[0], "partitions", None) if topics else None
    return ErrorCode(partitions[0].error_code) if partitions else ErrorCode.NONE

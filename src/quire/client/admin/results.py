"""What admin operations share: errors per item, and retries while the controller moves."""

from collections.abc import Callable
from typing import TypeVar

from quire.client.backoff import Backoff
from quire.client.cluster import ANY, Cluster
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.schema import Message
from quire.steps import Steps, sleep

R = TypeVar("R")
_MOVED = (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def error(code: int, message: str | None, otherwise: str) -> ApiError | None:
    """The error of one item, with the broker's message if there is one; None if there is no error."""
    return ApiError(ErrorCode(code), message or otherwise) if code else None


def ask_controller(
    cluster: Cluster, request: Message, response: type[R], codes: Callable[[R], list[int]], *, node: int = ANY
) -> Steps[R]:
    """Retries until there is a controller: these errors mean that nothing was done, so a retry is safe."""
    backoff = Backoff(cluster.random)
    deadline_ms = cluster.clock.monotonic_ms() + cluster.request_timeout_ms
    while True:
        answer = yield from cluster.ask(node, request, response)
        moved = any(code in _MOVED for code in codes(answer))
        if not moved or cluster.clock.monotonic_ms() > deadline_ms:
            return answer
        yield from sleep(cluster.clock, backoff.next_ms())

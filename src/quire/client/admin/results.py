"""What admin operations share: errors per item, and asking again while the controller moves."""

from collections.abc import Callable
from typing import TypeVar

from quire.client.backoff import Backoff
from quire.client.cluster import ANY, Cluster
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.schema import Message
from quire.steps import Steps, sleep

R = TypeVar("R")


def error(code: int, message: str | None, otherwise: str) -> ApiError | None:
    """The error of one item, with the broker's own words where it gave some; None if there was none."""
    return ApiError(ErrorCode(code), message or otherwise) if code else None


def ask_controller(
    cluster: Cluster, request: Message, response: type[R], codes: Callable[[R], list[int]], *, node: int = ANY
) -> Steps[R]:
    """Asks until there is a controller to answer: NOT_CONTROLLER means nothing was done, so asking again is safe."""
    backoff = Backoff(cluster.random)
    deadline_ms = cluster.clock.monotonic_ms() + cluster.request_timeout_ms
    while True:
        answer = yield from cluster.ask(node, request, response)
        moved = any(code == ErrorCode.NOT_CONTROLLER for code in codes(answer))
        if not moved or cluster.clock.monotonic_ms() > deadline_ms:
            return answer
        yield from sleep(cluster.clock, backoff.next_ms())

"""Responses that wait for the log: each is sent when everything written before it is committed.

A response that wrote nothing waits too, because it may depend on records that are not committed yet. When leadership is
lost, the next leader decides about the records, and every response that waits is replaced by a refusal.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from quire.pending import Pending

logger = logging.getLogger("quire.controller")

R = TypeVar("R")


class WriteQueue:
    __slots__ = ("_committed_offset", "_waiting")

    def __init__(self, committed_offset: int = 0) -> None:
        self._committed_offset = committed_offset
        self._waiting: deque[tuple[int, Pending[Any], Any, Callable[[], Any]]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def is_committed(self, end_offset: int) -> bool:
        return end_offset <= self._committed_offset

    def answer(self, response: R, end_offset: int, refused: Callable[[], R]) -> Pending[R]:
        """`response` once everything below `end_offset` is committed; what `refused` makes if leadership ends first."""
        pending: Pending[R] = Pending()
        if end_offset <= self._committed_offset and not self._waiting:
            pending.complete(response)
        else:
            self._waiting.append((end_offset, pending, response, refused))
        return pending

    def committed(self, offset: int) -> None:
        self._committed_offset = max(self._committed_offset, offset)
        while self._waiting and self._waiting[0][0] <= self._committed_offset:
            _, pending, response, _ = self._waiting.popleft()
            _complete(pending, response)

    def refuse_all(self) -> None:
        while self._waiting:
            _, pending, _, refused = self._waiting.popleft()
            _complete(pending, refused())


def _complete(pending: Pending[Any], response: Any) -> None:
    """An exception in one waiter must not keep the others from their responses."""
    try:
        pending.complete(response)
    except Exception:
        logger.exception("an answer could not be delivered")

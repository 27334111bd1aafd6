"""Changes of the voters that the machine has not answered yet."""

from itertools import count

from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode


class PendingChanges:
    __slots__ = ("_ids", "_waiting")

    def __init__(self) -> None:
        self._ids = count()
        self._waiting: dict[int, Pending[ApiError]] = {}

    def add(self) -> tuple[int, Pending[ApiError]]:
        """The id of a new request, and its result, whose code is NONE if the change is made."""
        request_id = next(self._ids)
        changed = self._waiting[request_id] = Pending()
        return request_id, changed

    def answer(self, request_id: int, error: ErrorCode, message: str) -> None:
        self._waiting.pop(request_id).complete(ApiError(error, message))

    def refuse_all(self, error: ApiError) -> None:
        waiting, self._waiting = self._waiting, {}
        for changed in waiting.values():
            changed.complete(error)

"""Deletes the logs of deleted topics a few at a time, because thousands of them would block the event loop.

A log in this queue is no longer in use. It is deleted at once if a new topic of the same name needs its directory, and
before the node stops: the next start would find the log of an unknown topic, and keep it as a stray log. For the same
reason the response to DeleteTopics is sent when the logs are deleted.
"""

import logging

from quire.pending import Pending, completed
from quire.protocol.errors import ApiError
from quire.storage import Log
from quire.storage.directory.log_directory import LogDirectory
from quire.turns import Turns

log = logging.getLogger("quire.partitions")


class LogDeletions:
    __slots__ = ("_turns", "_waiting", "_when_done")

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._waiting: dict[tuple[str, int], tuple[LogDirectory, Log]] = {}
        """By topic and partition."""
        self._when_done: list[Pending[None]] = []

    def add(self, key: tuple[str, int], directory: LogDirectory, held: Log) -> None:
        self.delete_now(key)
        self._waiting[key] = (directory, held)
        self._turns.add(lambda: self.delete_now(key))

    def delete_now(self, key: tuple[str, int]) -> None:
        """Deletes the log of this partition if it is in the queue."""
        directory, held = self._waiting.pop(key, (None, None))
        if directory is not None and directory.logs.get(key) is held:
            try:
                directory.delete_log(*key)
            except ApiError as error:
                log.error("the log of %s-%d could not be deleted: %s", *key, error.message)
        if self._when_done and not self._waiting:
            done, self._when_done = self._when_done, []
            for each in done:
                each.complete_once(None)

    def when_done(self) -> Pending[None]:
        """Completes when the queue is empty."""
        if not self._waiting:
            return completed(None)
        self._when_done.append(Pending())
        return self._when_done[-1]

    def finish(self) -> None:
        for key in list(self._waiting):
            self.delete_now(key)

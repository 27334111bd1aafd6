"""The events of a simulated run, and a digest of them.

Disk, network and jobs `note` small events. Clients, faults and the node's log lines `tell` the events of the story that
a person reads. Two runs of one seed must end with equal digests. The last lines of both are kept, so that a failing run
can show what led up to it.
"""

from collections import deque
from collections.abc import Callable
from hashlib import blake2b

HASHED_TOGETHER = 1000
"""Lines: hashing them one by one takes several times as long."""


class Trace:
    __slots__ = ("_echo", "_hash", "_not_hashed", "_recent", "_story", "events", "speaker")

    def __init__(self, *, keep: int = 200, echo: Callable[[str], None] | None = None) -> None:
        """`echo` is called with every line as it happens."""
        self.events = 0
        self.speaker = ""
        """The node whose code runs now, if there are several."""
        self._echo = echo
        self._hash = blake2b(digest_size=16)
        self._not_hashed: list[str] = []
        self._recent: deque[str] = deque(maxlen=keep)
        self._story: deque[str] = deque(maxlen=keep)

    def note(self, line: str) -> None:
        """A small event: a write to disk, a segment sent."""
        self.events += 1
        lines = self._not_hashed
        lines.append(line)
        if len(lines) >= HASHED_TOGETHER:
            self._hash_all()
        if self._echo is not None:
            self._echo(line)

    def tell(self, line: str) -> None:
        """An event that matters to a person: a fault, a new topic, a line that the node logged."""
        self._story.append(line)
        self.note(line)

    @property
    def digest(self) -> str:
        self._hash_all()
        return self._hash.hexdigest()

    def _hash_all(self) -> None:
        if self._not_hashed:
            self._hash.update("\n".join([*self._not_hashed, ""]).encode())
            self._recent.extend(self._not_hashed)
            self._not_hashed.clear()

    def recent(self) -> list[str]:
        self._hash_all()
        return list(self._recent)

    def story(self) -> list[str]:
        return list(self._story)

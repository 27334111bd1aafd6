"""What happened in a simulated run, folded into one digest.

Disk, network and jobs note their events here. Two runs of one seed must end with equal digests; the last lines are kept
so that a failing run can say what led up to it.
"""

from collections import deque
from hashlib import blake2b


class Trace:
    __slots__ = ("_hash", "_recent", "events")

    def __init__(self, *, keep: int = 200) -> None:
        self.events = 0
        self._hash = blake2b(digest_size=16)
        self._recent: deque[str] = deque(maxlen=keep)

    def note(self, line: str) -> None:
        self.events += 1
        self._recent.append(line)
        self._hash.update(line.encode())
        self._hash.update(b"\n")

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def recent(self) -> list[str]:
        return list(self._recent)

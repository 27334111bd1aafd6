"""Makes the Python process of Spark's that this runs in quick with small tasks, by two things that Spark leaves slow.

- Spark sends a task in two parts over TCP, and its system holds the second back until the first is acknowledged
  (Nagle's algorithm). Ours delays that by 40 ms, in the hope of an answer that it could go with. It is told not to.
- After every task Spark has all objects looked through for garbage. Most belong to modules, which nobody ever throws
  away, and looking at them takes ten times as long as a small task. They are set aside, once (`gc.freeze`).

Neither changes what is read or written. What it costs: whatever else lives at that one moment is set aside too, such as
what an earlier task of the user's left in a global variable. It goes as always when nobody refers to it; only if it is
part of a cycle it stays as long as the process. Earlier there would be less of that, but before the first task is done
most modules are still to be imported, and Python can set aside everything or nothing.

The data source comes here when Spark asks it for a reader or a writer, and
those do when they are unpickled in a task, after its first part and before its second. In a process that is not
Spark's nothing is done.
"""

import gc
import socket
import sys
from contextlib import suppress
from types import FrameType
from typing import Any


class SentToTasks:
    """For what Spark pickles to its tasks."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        settle_in()


def settle_in() -> None:
    connection = find_connection()
    if connection is not None:
        answer_at_once(connection)
        set_modules_aside()


def find_connection() -> int | None:
    """The file descriptor by which Spark's Java process talks to this one; None unless it is Spark that called us."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        package = frame.f_globals.get("__package__") or ""
        # What tasks and questions come by has this name in all of Spark's Python processes.
        if package.split(".")[0] == "pyspark" and (file := frame.f_locals.get("infile")) is not None:
            try:
                return int(file.fileno())
            except (AttributeError, OSError, ValueError):
                return None  # the process that keeps a stream's offsets has one for both ways, which does not tell
        frame = frame.f_back
    return None


def answer_at_once(connection: int) -> None:
    """Acknowledges what has come already, and what comes until something is sent; sends without waiting either."""
    if sys.platform != "linux":
        return
    with suppress(OSError):  # it may be no socket of TCP: Spark can be told to use others, which never wait
        stream = socket.socket(fileno=connection)
        try:
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        finally:
            stream.detach()


_came_before = False


def set_modules_aside() -> None:
    """At the second task: its first has imported what it needs, and Spark has just thrown away what was garbage."""
    global _came_before
    if _came_before and not gc.get_freeze_count():
        gc.freeze()
    _came_before = True

"""Speeds up small tasks in Spark's Python processes, by fixing two delays, and shortens their errors (`one_sentence`).

- Spark sends a task in two parts over TCP, and the kernel holds the second back until the first is acknowledged
  (Nagle's algorithm). The receiver delays the acknowledgement by 40 ms, unless it is told to acknowledge at once.
- After every task, Spark runs a full garbage collection. Most objects belong to modules and are never freed, and
  traversing them takes ten times as long as a small task. They are excluded once (`gc.freeze`).

Neither changes what is read or written. The cost: other objects that exist at that moment are excluded too, such as
those that an earlier task of the user has left in a global variable. They are freed as always when the last reference
goes; only cycles among them are never collected. Freezing earlier would exclude fewer of them, but most modules are not
imported before the first task is done, and Python can only freeze everything.

The data source calls this when Spark requests a reader or a writer, and these do when they are unpickled in a task,
between its two parts. In a process that is not Spark's, it does nothing.
"""

import gc
import os
import socket
import sys
from contextlib import suppress
from types import FrameType
from typing import Any

HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"


class SentToTasks:
    """The base of objects that Spark pickles for its tasks."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        speed_up_this_process()


def speed_up_this_process() -> None:
    connection = find_connection()
    if connection is not None:
        acknowledge_at_once(connection)
        freeze_modules()


def find_connection() -> int | None:
    """The file descriptor of the connection to Spark's Java process; None if Spark did not call this."""
    try:
        file = _find_input()
        return None if file is None else int(file.fileno())
    except (AttributeError, OSError, ValueError):
        return None  # in the process for a stream's offsets it has no file descriptor


def hide_traceback() -> None:
    """Makes Spark's Python process leave out the traceback of the exception with which it is about to end."""
    if _find_input() is not None:
        os.environ[HIDE_TRACEBACK] = "1"


def _find_input() -> Any:
    """The stream from which Spark's Python process reads."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        package = frame.f_globals.get("__package__") or ""
        # The input stream has this name in all of Spark's Python processes.
        if package.split(".")[0] == "pyspark" and (file := frame.f_locals.get("infile")) is not None:
            return file
        frame = frame.f_back
    return None


def acknowledge_at_once(connection: int) -> None:
    """Acknowledges received data at once, until the next send; also sends without delay."""
    if sys.platform != "linux":
        return
    with suppress(OSError):  # it may not be a TCP socket: Spark can use other kinds, which have no such delay
        stream = socket.socket(fileno=connection)
        try:
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        finally:
            stream.detach()


_has_run_before = False


def freeze_modules() -> None:
    """Freezes at the second task: the first has imported the modules, and Spark has just collected garbage."""
    global _has_run_before
    if _has_run_before and not gc.get_freeze_count():
        gc.freeze()
    _has_run_before = True

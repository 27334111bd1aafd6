"""Ends a process together with its parent, also when the parent is killed with -9."""

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_POLL_S = 0.5


def die_with_parent(parent_pid: int) -> None:
    """Kills this process as soon as its parent has ended. Linux only; elsewhere it does nothing."""
    if not sys.platform.startswith("linux"):
        return
    on_parent_death(signal.SIGKILL)
    if os.getppid() != parent_pid:  # the parent ended before prctl
        os.kill(os.getpid(), signal.SIGKILL)


def on_parent_death(number: int) -> None:
    """Linux only: the system sends this signal when the thread that started this process ends."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def set_process_name(name: str) -> None:
    """The name that `ps -o comm` and `top` show: 15 bytes at most, and on Linux only."""
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def wait_for_the_end_of(parent_pid: int) -> None:
    """Blocks until the parent has ended. Unlike a signal, this does not depend on a thread of the parent."""
    import select
    import time

    try:
        parent = os.pidfd_open(parent_pid)
    except (AttributeError, OSError):  # not Linux, not allowed in a container, or the parent has ended
        while os.getppid() == parent_pid:
            time.sleep(_POLL_S)
        return
    if os.getppid() == parent_pid:  # otherwise the number may belong to another process by now
        poll = select.poll()
        poll.register(parent, select.POLLIN)
        poll.poll()

"""Runs the `quire` command in a process that does not outlive the one that started it.

`quire.testing` starts nodes as `python -m quire.testing.launch PARENT_PID start ...`. A node of a test also stops when
its standard input ends, but that needs the parent's end of the pipe to be closed everywhere, and a forked worker of the
test process may hold a copy. The kernel's parent-death signal has no such gap.
"""

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid: int) -> None:
    """SIGKILL for this process as soon as its parent is gone. Linux only; elsewhere the end of stdin has to do."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # it died before we asked
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    parent_pid = int(sys.argv.pop(1))
    if parent_pid:
        die_with_parent(parent_pid)
    from quire.cli.main import main as quire

    quire()


if __name__ == "__main__":
    main()

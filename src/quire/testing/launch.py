"""Runs the `quire` command, or another Python module, in a process that ends with its parent process.

    python -m quire.testing.launch PARENT_PID start ...               the `quire` command
    python -m quire.testing.launch PARENT_PID -m some.module ...      any module, as `python -m some.module ...`
    python -m quire.testing.launch PARENT_PID --remove FOLDER ...     removes FOLDER if the parent ends first

`quire.testing` starts nodes in this way. A node of a test also stops when its standard input ends, but that requires
all copies of the pipe to be closed, and a forked worker of the test process may have one.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from typing import TYPE_CHECKING

from quire.cli.node.parent import die_with_parent, on_parent_death, wait_for_the_end_of

if TYPE_CHECKING:
    import threading

_REMOVAL_S = 10.0


def remove_with_parent(parent_pid: int, folder: str) -> threading.Thread:
    """Starts a thread that removes the folder and ends this process as soon as its parent has ended."""
    import threading

    if sys.platform.startswith("linux"):
        on_parent_death(signal.SIGCONT)  # a paused process could not notice it

    def watch() -> None:
        import shutil
        import time

        wait_for_the_end_of(parent_pid)
        deadline = time.monotonic() + _REMOVAL_S
        while os.path.lexists(folder) and time.monotonic() < deadline:  # the node may still create files in it
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    watching = threading.Thread(target=watch, name="watch the parent", daemon=True)
    watching.start()
    return watching


def _parent_is_ending(parent_pid: int) -> bool:
    """Whether the parent has ended, or has closed its end of standard input, which it otherwise does after the wait."""
    import select

    if os.getppid() != parent_pid:
        return True
    poll = select.poll()
    poll.register(0, select.POLLIN)
    return any(events & (select.POLLHUP | select.POLLNVAL) for _, events in poll.poll(0))


def main() -> None:
    parent_pid = int(sys.argv.pop(1))
    watching = None
    if sys.argv[1:2] == ["--remove"]:
        watching = remove_with_parent(parent_pid, sys.argv[2])
        del sys.argv[1:3]
    elif parent_pid:
        die_with_parent(parent_pid)
    try:
        _run()
    finally:
        # The end of standard input has stopped the node: let the thread finish, which ends the process.
        if watching is not None and _parent_is_ending(parent_pid):
            watching.join(_REMOVAL_S)


def _run() -> None:
    if sys.argv[1:2] == ["-m"]:
        del sys.argv[:2]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        from quire.cli.main import main as quire

        quire()


if __name__ == "__main__":
    main()

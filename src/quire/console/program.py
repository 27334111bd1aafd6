"""The start of a program: imports its root command, and calls it.

Python takes a noticeable time to import a command line. Its own reaction to Ctrl-C meanwhile is a traceback, so until
`stopping.term_ends_like_ctrl_c` takes over, the signal ends the process as the system does: at once and in silence.
"""

import signal
from importlib import import_module


def run(entry_point: str) -> None:
    """Calls the function that `entry_point` names as module:function."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not if the parent process ignores the signal
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    module, _, function = entry_point.partition(":")
    getattr(import_module(module), function)()

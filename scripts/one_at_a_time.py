"""`one_at_a_time.py FILE COMMAND...` runs a command when nobody else runs one under the same file.

As flock(1) does, which not every system has. The lock is one on the open file, which the command inherits: it ends when
the command does, however that is.
"""

import fcntl
import os
import signal
import sys


def main() -> None:
    path, command = sys.argv[1], sys.argv[2:]
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    lock = os.open(path, os.O_RDWR)  # On NFS only a file that is open for writing can be locked for oneself alone.
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("waiting for another make that is setting up ...", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)
    os.set_inheritable(lock, True)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()

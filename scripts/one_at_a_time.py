"""`one_at_a_time.py FILE COMMAND...` runs a command while no other process runs one under the same file.

It does what flock(1) does, which not every system has. The command inherits the open file with the lock, so the lock
ends with the command, even if that is killed.
"""

import fcntl
import os
import signal
import sys


def main() -> None:
    path, command = sys.argv[1], sys.argv[2:]
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    lock = os.open(path, os.O_RDWR)  # NFS allows an exclusive lock only on a file that is open for writing.
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("waiting for another make that is setting up ...", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)
    os.set_inheritable(lock, True)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()

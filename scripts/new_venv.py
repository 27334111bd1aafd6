"""Creates a virtual environment, as `python -m venv DIR`. Ctrl-C ends it without a traceback of the standard library.

python scripts/new_venv.py DIR
"""

import signal
import sys
import venv

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    venv.main(sys.argv[1:])

"""Runs pip, and shows its progress in a few lines: downloads, builds, and the elapsed time.

    python scripts/pip_install.py PYTHON ARGUMENT...      as PYTHON -m pip ARGUMENT...

pip itself prints everything or nothing, and downloading Spark or compiling Quire takes minutes. If pip fails, its whole
output follows.
"""

import queue
import re
import subprocess
import sys
import threading
import time

QUIET_S = 10.0
DOWNLOADING = re.compile(r"\s*Downloading (\S+) \((.+)\)")
BUILDING = re.compile(r"\s*Building (?:wheel|editable) for (\S+) .*: started")
INSTALLING = re.compile(r"Installing collected packages: (.+)")


def progress(line: str) -> str | None:
    """The line to show for a line of pip's output; None if it shows no progress."""
    if found := DOWNLOADING.match(line):
        name = found[1].rpartition("/")[2]
        return None if name.endswith(".metadata") else f"downloading {name} ({found[2]})"
    if found := BUILDING.match(line):
        compiles = " (compiles its inner loops: a minute or two)" if found[1].startswith("quire") else ""
        return f"building {found[1]}{compiles}"
    if found := INSTALLING.match(line):
        names = found[1].split(", ")
        return f"installing {names[0]}" if len(names) == 1 else f"installing {len(names)} packages"
    return None


def run(command: list[str]) -> int:
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    heard: list[str] = []
    while True:
        try:
            line = lines.get(timeout=QUIET_S)
        except queue.Empty:
            print(f"  ... {time.monotonic() - began:.0f} s", flush=True)
            continue
        if line is None:
            break
        heard.append(line)
        if (shown := progress(line)) is not None:
            print(f"  {shown}", flush=True)
    if process.wait():
        sys.stderr.write("".join(heard))
    return process.returncode


if __name__ == "__main__":
    try:
        sys.exit(run([sys.argv[1], "-m", "pip", *sys.argv[2:]]))
    except KeyboardInterrupt:
        sys.exit(130)

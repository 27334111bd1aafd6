"""`quire-sim`: runs the simulator, which lives beside the sources and is not part of the installed package."""

import os
import sys
from importlib import import_module
from pathlib import Path

import quire

ROOT = Path(quire.__file__).resolve().parents[2]


def main() -> None:
    if not (ROOT / "simulator" / "main.py").exists():
        sys.exit("quire-sim needs Quire's source tree: clone the repository and run it from there.")
    sys.path.insert(0, str(ROOT))
    # The simulator starts itself over with a fixed hash seed, and must be found again from any folder.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    import_module("simulator.main").main()

"""The data directories that `interop/record_golden.py` recorded from Apache Kafka."""

import json
import shutil
from pathlib import Path
from typing import Any

FOLDERS = sorted(path for path in Path(__file__).parent.glob("kafka-*/*") if path.is_dir())
NAMES = [f"{folder.parent.name}-{folder.name}" for folder in FOLDERS]


def restore(recorded: Path, target: Path) -> Path:
    """A copy to work on, byte for byte: the zeros at the end of files, which are not kept, are back (as holes)."""
    shutil.copytree(recorded / "data", target)
    for name, size in json.loads((recorded / "sizes.json").read_text()).items():
        with (target / name).open("r+b") as file:
            file.truncate(size)
    return target


def expected(recorded: Path) -> dict[str, Any]:
    """By `topic-partition`, what Apache Kafka served from it."""
    served = json.loads((recorded / "expected.json").read_text())
    assert isinstance(served, dict)
    return served

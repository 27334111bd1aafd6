import subprocess
import sys
from pathlib import Path

from tests.cli.command import PATIENCE_S, environment


def test_the_simulator_is_found_from_any_folder_and_calls_itself_by_its_name(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("quire-sim")
    done = subprocess.run(
        [script, "--help"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, env=environment()
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: quire-sim ")

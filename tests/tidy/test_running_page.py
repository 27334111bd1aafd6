"""docs/running.md: its systemd unit is valid, and its commands use only existing options."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from quire.cli.main import quire
from tests.cli.command import command_of

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "running.md").read_text()
UNIT = "".join(re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL))
COMMANDS = [
    line.split(" | ")[0].split("  #")[0]
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("quire ")
]


def parse(command: str) -> None:
    _, *arguments = shlex.split(command)
    found, arguments = command_of(quire, arguments)
    found.make_context(found.name, arguments)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_parse(command: str) -> None:
    parse(command)


def test_the_unit_starts_quire_with_options_that_exist() -> None:
    (start,) = re.findall(r"^ExecStart=/opt/quire/bin/(quire .*)$", UNIT, re.MULTILINE)
    parse(start)
    assert start in COMMANDS, "the page shows the same command for a shell"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "quire.service"
    unit.write_text(UNIT.replace("/opt/quire/bin/quire", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
    ours = [line for line in done.stderr.splitlines() if "quire.service" in line]
    assert not ours, done.stderr

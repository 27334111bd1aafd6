"""docs/cluster.md: its commands use only existing options, and its settings are valid."""

import re
import shlex
from pathlib import Path

import pytest

from quire.cli.main import quire
from quire.config.broker_config import BrokerConfig
from quire.config.properties import read_properties
from quire.controller.initial_voters import parse_initial_voters
from tests.cli.command import command_of

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cluster.md").read_text()
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("quire ")
]
SETTINGS = "".join(re.findall(r"```properties\n(.*?)```", PAGE, re.DOTALL))


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_parse(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "node1.properties").write_text(SETTINGS)
    (tmp_path / "plan.json").write_text('{"version": 1, "partitions": []}')
    found, arguments = command_of(quire, shlex.split(command)[1:])
    found.make_context(found.name, arguments)


def test_the_settings_are_those_of_one_of_several_controllers() -> None:
    config = BrokerConfig({name: found.value for name, found in read_properties(SETTINGS).items()})
    assert not config.topology.is_alone and config.topology.is_controller
    (voters,) = re.findall(r"--initial-controllers (\S+)\n", PAGE)
    assert parse_initial_voters(voters, "CONTROLLER").ids == [1, 2, 3]

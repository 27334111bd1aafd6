"""Every command that a script would call can print JSON."""

import json
from pathlib import Path

import click
import pytest

from tests.cli.command import quire
from tests.cli.tree import leaves

WITHOUT = {
    "start": "it prints one line, `ready HOST:PORT`",
    "pipelines run": "it runs until it is stopped; `pipelines status --json` describes it",
    "completion": "it prints a script",
}


@pytest.mark.parametrize(("name", "command"), list(leaves()), ids=lambda each: each if isinstance(each, str) else "")
def test_a_command_prints_json_unless_it_has_nothing_to_tell_a_program(name: str, command: click.Command) -> None:
    has_json = any("--json" in parameter.opts for parameter in command.params)
    assert has_json != (name in WITHOUT)


def test_storage_tells_a_program_what_it_did(tmp_path: Path) -> None:
    uuid = json.loads(quire("storage", "random-uuid", "--json").stdout)["uuid"]
    arguments = ("storage", "format", "--data", str(tmp_path / "data"), "--cluster-id", uuid, "--json")
    (formatted,) = json.loads(quire(*arguments).stdout)
    assert (formatted["cluster_id"], formatted["node_id"], formatted["kept"]) == (uuid, 1, False)
    (kept,) = json.loads(quire(*arguments, "--ignore-formatted").stdout)
    assert kept == formatted | {"kept": True}


def test_stopping_and_resetting_pipelines_tells_a_program_what_was_done(tmp_path: Path) -> None:
    folder = Path(__file__).parents[2] / "pipelines" / "shop"
    folders = ("--folder", str(folder), "--state", str(tmp_path), "--json")
    stopped = json.loads(quire("pipelines", "stop", "shop", *folders).stdout)
    assert stopped == [{"name": "shop", "stopped": False}]
    reset = json.loads(quire("pipelines", "reset", "shop", "--yes", *folders).stdout)
    assert reset == [{"name": "shop", "removed": [], "deleted_topics": []}]

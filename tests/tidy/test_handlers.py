"""Each handler lists at its top what changed in each version it serves, and has a test file of its name."""

import ast
import re
from pathlib import Path

import pytest

from quire.node.api import SERVED, Served
from quire.protocol.apis import module_name

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "src" / "quire" / "node" / "api"
TESTS = ROOT / "tests" / "node" / "api"
NOTES = re.compile(r"^Versions on (.+) listeners:\n((?: {4,}\S.*\n?)+)\Z", re.MULTILINE)
NOTE = re.compile(r"^ {4}(\d+)(?:-(\d+))? +\S", re.MULTILINE)


def listeners(served: Served) -> str:
    kinds = {"broker": served.on_broker, "controller": served.on_controller}
    return " and ".join(kind for kind, is_served in kinds.items() if is_served)


def modules() -> set[str]:
    """Some APIs have a handler of their own on controller listeners."""
    others = {served.controller_module for served in SERVED.values() if served.controller_module}
    return {*map(module_name, SERVED), *others}


def test_every_handler_is_served() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} - {"__init__"} == modules()


def test_every_handler_has_a_test_file_of_its_name() -> None:
    tested = {path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py")}
    assert modules() <= tested


@pytest.mark.parametrize("name", SERVED)
def test_a_handler_notes_what_changed_in_each_version_it_serves(name: str) -> None:
    served = SERVED[name]
    docstring = ast.get_docstring(ast.parse((FOLDER / f"{module_name(name)}.py").read_text())) or ""
    notes = NOTES.search(docstring)
    assert notes, f"{name}: the docstring does not end with 'Versions on ... listeners:' and a line for each version"
    assert notes[1] == listeners(served)
    noted = [version for first, last in NOTE.findall(notes[2]) for version in range(int(first), int(last or first) + 1)]
    assert noted == list(range(served.oldest, served.newest + 1))

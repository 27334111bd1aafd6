"""docs/architecture.md follows a request by the names of calls: each of them must be there for a search to find."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "quire"
CALL = re.compile(r"`([A-Z]\w+)\.(\w+)`")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
MODULE = re.compile(r"`([a-z_/]+\.py)`")


def section() -> str:
    page = (ROOT / "docs" / "architecture.md").read_text()
    return page.split("### The calls by name", 1)[1].split("\n### ", 1)[0]


def methods() -> set[tuple[str, str]]:
    """Every (class, method) in the product's source; a class has the methods of its bases."""
    own: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                own.setdefault(node.name, set()).update(each.name for each in node.body if isinstance(each, FUNCTIONS))
                bases.setdefault(node.name, set()).update(each.id for each in node.bases if isinstance(each, ast.Name))

    def of(name: str) -> set[str]:
        return own.get(name, set()).union(*(of(base) for base in bases.get(name, set()) - {name}))

    return {(name, method) for name in own for method in of(name)}


KNOWN = methods()


def test_the_section_names_the_way_of_each_request() -> None:
    assert len(CALL.findall(section())) > 20
    for request in ("Produce", "Fetch", "JoinGroup", "EndTxn"):
        assert f"\n| {request}" in section()


@pytest.mark.parametrize("call", sorted(set(CALL.findall(section()))), ids=".".join)
def test_a_call_exists_under_its_name(call: tuple[str, str]) -> None:
    assert call in KNOWN


@pytest.mark.parametrize("module", sorted(set(MODULE.findall(section()))))
def test_a_module_is_there_and_explains_the_path(module: str) -> None:
    assert len((ast.get_docstring(ast.parse((SOURCES / module).read_text())) or "").splitlines()) > 3

"""Docstrings and pages that follow a request through the code name existing methods, such as `Rebalance.prepare`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_text())
    for folder in ("src", "simulator")
    for path in sorted((ROOT / folder).rglob("*.py"))
}
CLASSES = [node for tree in MODULES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
NAMED = re.compile(r"\b([A-Z][a-z]\w+)\.(_?[a-z]\w+)")
OF_JAVA = {("String", "hashCode")}


def own_members(node: ast.ClassDef) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield each.name
        elif isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.id


OWN: dict[str, set[str]] = {}
BASES: dict[str, set[str]] = {}
for each in CLASSES:
    OWN.setdefault(each.name, set()).update(own_members(each))
    BASES.setdefault(each.name, set()).update(re.findall(r"\w+", " ".join(map(ast.unparse, each.bases))))


def has_member(name: str, member: str) -> bool:
    return member in OWN.get(name, ()) or any(has_member(base, member) for base in BASES.get(name, ()) if base != name)


def docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def missing(path: str, text: str) -> list[str]:
    return [
        f"{path} names {name}.{member}"
        for name, member in NAMED.findall(text)
        if (name, member) not in OF_JAVA and not has_member(name, member)
    ]


def test_a_method_that_a_docstring_names_exists() -> None:
    found = [each for path, tree in MODULES.items() for text in docstrings(tree) for each in missing(path, text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", ["architecture.md", "simulator.md", "adding-an-api.md"])
def test_a_method_that_a_page_names_exists(page: str) -> None:
    found = missing(page, (ROOT / "docs" / page).read_text())
    assert not found, "\n".join(found)

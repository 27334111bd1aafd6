"""Every file that a page names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
TOP_FOLDERS = "benchmarks|campaign|docs|examples|interop|pipelines|scripts|simulator|src|tests"
NAMED = re.compile(rf"`((?:{TOP_FOLDERS})/[\w./-]*)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_paths_a_page_names_exist(page: Path) -> None:
    missing = [path for path in NAMED.findall(page.read_text()) if not (ROOT / path).exists()]
    assert not missing, f"{page.name} names {missing}"


def test_paths_in_code_spans_are_found() -> None:
    assert NAMED.findall("open `src/quire/node` or `tests/x.py`, not src/quire or `make test`") == [
        "src/quire/node",
        "tests/x.py",
    ]

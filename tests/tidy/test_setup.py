"""Quire installs without a C compiler, and then runs interpreted."""

import runpy
from pathlib import Path
from typing import Any

import pytest
import setuptools

ROOT = Path(__file__).parents[2]


def test_no_compiled_module_is_needed_for_an_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(setuptools, "setup", lambda **given: asked.update(given))
    monkeypatch.chdir(ROOT)
    runpy.run_path("setup.py")
    native = {path.stem for path in Path("src").rglob("*_native.py")}
    assert {module.name.rpartition(".")[2] for module in asked["ext_modules"]} == native
    assert [module.name for module in asked["ext_modules"] if not module.optional] == []

"""Every package of the repository, and every package and module of `quire`, is in a layer that lint-imports checks."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ENTRY_POINTS = {"quire.__init__", "quire.__main__"}  # no other module imports them


def importlinter() -> dict[str, Any]:
    settings: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return settings


def layers() -> set[str]:
    (layered,) = [contract for contract in importlinter()["contracts"] if contract["type"] == "layers"]
    return {name.strip() for line in layered["layers"] for name in line.split(":")}


def packages(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if (path / "__init__.py").exists()}


def test_every_package_is_in_a_layer() -> None:
    below = {
        f"quire.{path.stem}"
        for path in (ROOT / "src" / "quire").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    beside = packages(ROOT) | packages(ROOT / "src") - {"quire"}
    assert beside | (below - ENTRY_POINTS) == layers()


def test_the_layers_are_those_of_packages_that_are_read() -> None:
    assert {name.partition(".")[0] for name in layers()} == set(importlinter()["root_packages"])

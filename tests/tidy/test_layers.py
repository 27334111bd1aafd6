"""Every package and module is in a layer that the import-linter checks."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AT_THE_DOOR = {"quire.__init__", "quire.__main__"}  # neither is imported by anything of ours


def layers() -> set[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layered,) = [contract for contract in contracts if contract["type"] == "layers"]
    return {name.strip() for line in layered["layers"] for name in line.split(":")}


def test_every_package_is_in_a_layer() -> None:
    packages = {path.name for path in (ROOT / "src").iterdir() if (path / "__init__.py").exists()}
    below = {
        f"quire.{path.stem}"
        for path in (ROOT / "src" / "quire").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert (packages - {"quire"}) | (below - AT_THE_DOOR) | {"simulator"} == layers()

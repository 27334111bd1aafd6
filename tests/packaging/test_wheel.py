"""The output of `python -m build` installs into an empty environment, and runs with its declared dependencies alone.

The wheel is built from the sdist, so a file that the sdist lacks is noticed. No network is needed: build back end and
dependencies are those of the environment that runs the tests, and the compiled modules are taken from it as they are.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py")
COMPILED = sorted(path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*_native.*.so"))
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PATIENCE_S = 400
"""Setuptools translates the compiled modules to C, which takes a busy machine minutes."""


def run(*arguments: str | Path, cwd: Path, stdin: str = "") -> str:
    """Runs a command without access to the repository and to the environment of the tests."""
    inherited = {name: value for name, value in os.environ.items() if name in ("HOME", "PATH", "TMPDIR")}
    done = subprocess.run(
        arguments, cwd=cwd, env=inherited, input=stdin, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(kind: str, folder: Path, dist: Path) -> Path:
    run(sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", dist, ".", cwd=folder)
    (made,) = dist.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


def lay_out_compiled(folder: Path) -> None:
    """The folder in which setuptools looks for compiled modules of an earlier build; the copies are newer than the C
    files that Cython writes."""
    lib = folder / "build" / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    after_the_build = time.time() + 3600
    for path in COMPILED:
        (lib / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / "src" / path, lib / path)
        os.utime(lib / path, (after_the_build, after_the_build))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    clone = tmp_path_factory.mktemp("clone")
    for name in SOURCES:
        shutil.copy(ROOT / name, clone)
    shutil.copytree(ROOT / "src", clone / "src", ignore=shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__"))
    return build("sdist", clone, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (folder,) = unpacked.iterdir()
    lay_out_compiled(folder)
    return build("wheel", folder, tmp_path_factory.mktemp("wheel"))


def link_dependencies(of: Path, site_packages: Path) -> None:
    """Makes only the declared dependencies visible there, from the environment of the tests."""
    with ZipFile(of) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(metadata).decode().partition("\n\n")[0].splitlines()
    required = [Requirement(line.partition(": ")[2]) for line in lines if line.startswith("Requires-Dist: ")]
    for requirement in required:
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            installed = distribution(requirement.name)
            tops = {file.parts[0] for file in installed.files or [] if file.parts[0] not in ("..", "__pycache__")}
            for top in tops:
                (site_packages / top).symlink_to(str(installed.locate_file(top)))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of a fresh virtual environment with the wheel."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    link_dependencies(wheel, site_packages)
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python")
    run(*pip, "install", "--quiet", "--no-index", wheel, cwd=folder)
    run(*pip, "check", cwd=folder)
    return folder / "bin"


@contextmanager
def started(commands: Path, folder: Path) -> Iterator[str]:
    """The address of a node of its own, with data under the folder."""
    arguments = [str(commands / "quire"), "start", "--listen", "127.0.0.1:0", "--data", str(folder / "data")]
    with subprocess.Popen(arguments, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            ready = process.stdout.readline()
            assert ready.startswith("ready "), process.stderr.read()
            yield ready.removeprefix("ready ").strip()
            process.terminate()
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()


def test_the_sdist_has_what_a_build_needs_and_no_tests(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {*SOURCES, "src/quire/real/reserve.h", "src/quire/py.typed"} <= names
    assert not [name for name in names if name.startswith(("tests/", "simulator/"))]


def test_the_wheel_has_the_license_the_types_and_the_compiled_modules(wheel: Path) -> None:
    names = ZipFile(wheel).namelist()
    assert {name for name in names if name.endswith(".so")} == {path.as_posix() for path in COMPILED}
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {
        "pyspark_quire",
        "quire",
        "quire_samples",
    }
    assert "quire/py.typed" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_only_commands_are_quire_and_its_samples(environment: Path, tmp_path: Path) -> None:
    commands = ["quire", "quire-samples"]
    assert sorted(path.name for path in environment.glob("quire*")) == commands
    for command in commands:
        assert run(environment / command, "--help", cwd=tmp_path).startswith(f"Usage: {command} ")


def test_the_import_is_the_installed_package(environment: Path, tmp_path: Path) -> None:
    code = "from importlib.util import find_spec as find; print(find('quire').origin, find('pyspark_quire').origin)"
    for path in run(environment / "python", "-c", code, cwd=tmp_path).split():
        assert Path(path).is_relative_to(environment.parent)


def test_an_installed_node_stores_and_returns_records_of_every_codec(environment: Path, tmp_path: Path) -> None:
    """A codec's package is imported at its first use: one that is not declared would be missing here."""
    quire = environment / "quire"
    with started(environment, tmp_path) as address:
        servers = ("--bootstrap-server", address)
        run(quire, "topics", "create", "greetings", "--config", "compression.type=uncompressed", *servers, cwd=tmp_path)
        for codec in CODECS:
            run(quire, "produce", "greetings", "--compression", codec, *servers, cwd=tmp_path, stdin=f"{codec}\n")
        read = run(quire, "consume", "greetings", "--from-beginning", *servers, cwd=tmp_path)
        assert read.splitlines() == list(CODECS)

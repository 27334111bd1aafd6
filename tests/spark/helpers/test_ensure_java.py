"""`scripts/ensure-java.sh` in an isolated system: a path with a few tools and a fake apt-get."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.spark.conftest import ROOT

TOOLS = ("sh", "sed", "head", "tail", "cp")
APT_GET = """#!/bin/sh
echo "$*" >> {folder}/apt-get.log
case "$*" in
    update*) echo "a mirror is away" >&2; exit 100 ;;
    *{package}) cp {folder}/packed/java {folder}/java ;;
    *) echo "Unable to locate package" >&2; exit 100 ;;
esac
"""


def script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def java(path: Path, version: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    script(path, f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """A folder that is the whole PATH: without Java, and without a package manager."""
    folder = tmp_path / "system"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None
        (folder / tool).symlink_to(os.path.realpath(found))
    script(folder / "id", "#!/bin/sh\necho 0\n")
    return folder


def add_apt_get(system: Path, package: str) -> None:
    java(system / "packed" / "java", "17.0.15")
    script(system / "apt-get", APT_GET.format(folder=system, package=package))


def ensure(system: Path, java_home: Path | None = None) -> tuple[int, str, str]:
    variables = {"PATH": str(system)} | ({} if java_home is None else {"JAVA_HOME": str(java_home)})
    command = [str(ROOT / "scripts" / "ensure-java.sh")]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def installed(system: Path) -> list[str]:
    log = system / "apt-get.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.split()[-1] for line in lines if line.startswith("install")]


@pytest.mark.parametrize("version", ["17.0.15", "21"])
def test_an_installed_java_is_used(system: Path, version: str) -> None:
    java(system / "java", version)
    assert ensure(system) == (0, "", "")


@pytest.mark.parametrize("before", [None, "1.8.0_392", "11.0.2"])
def test_a_missing_or_old_java_is_installed_although_a_mirror_is_away(system: Path, before: str | None) -> None:
    if before is not None:
        java(system / "java", before)
    add_apt_get(system, "openjdk-17-jre-headless")
    assert ensure(system) == (0, "installing Java, which Spark needs ...\n", "")
    assert installed(system) == ["openjdk-17-jre-headless"]


def test_a_release_without_java_17_gives_the_next(system: Path) -> None:
    add_apt_get(system, "openjdk-21-jre-headless")
    assert ensure(system)[0] == 0
    assert installed(system) == ["openjdk-17-jre-headless", "openjdk-21-jre-headless"]


def test_a_failed_installation_is_reported_with_the_reason(system: Path) -> None:
    add_apt_get(system, "another")
    code, _, said = ensure(system)
    assert code == 1
    assert "Unable to locate package" in said and "install it yourself (Debian: openjdk-17-jre-headless)" in said


def test_an_old_java_that_hides_the_installed_one_is_not_taken_for_it(system: Path) -> None:
    java(system / "java", "11.0.2")
    script(system / "apt-get", "#!/bin/sh\n")
    assert ensure(system)[0] == 1


def test_only_root_installs(system: Path) -> None:
    script(system / "id", "#!/bin/sh\necho 1000\n")
    add_apt_get(system, "openjdk-17-jre-headless")
    code, out, said = ensure(system)
    assert (code, out, said.count("\n"), installed(system)) == (1, "", 1, [])


def test_a_wrong_java_home_is_named_and_nothing_is_installed_beside_it(system: Path, tmp_path: Path) -> None:
    java(system / "java", "17.0.15")
    add_apt_get(system, "openjdk-17-jre-headless")
    for home, what in ((tmp_path / "none", "has no bin/java that runs"), (tmp_path / "old", "is version 11")):
        java(tmp_path / "old" / "bin" / "java", "11.0.2")
        assert ensure(system, home) == (
            1,
            "",
            f"Spark needs Java 17 or newer, and JAVA_HOME ({home}) {what}; set it to one, or unset it.\n",
        )
    java(tmp_path / "new" / "bin" / "java", "17.0.15")
    assert ensure(system, tmp_path / "new") == (0, "", "")
    assert installed(system) == []

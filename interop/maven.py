"""Jars from Maven, fetched once into `.interop/` in the project; the benchmarks use them too."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).parent.parent / ".interop"
_DEPENDENCY = """
    <dependency><groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version></dependency>"""
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>quire</groupId><artifactId>interop</artifactId><version>1</version>
  <dependencies>{0}
  </dependencies>{1}
</project>
"""
_CENTRAL = """
  <repositories>{0}
  </repositories>"""
_REPOSITORY = """
    <repository><id>{0}</id><url>https://repo.maven.apache.org/maven2</url></repository>"""


class NotAvailableError(RuntimeError):
    """Java, Maven or the Maven repository is missing; the message says which."""


def fetch(name: str, what: str, artifacts: Mapping[str, str], mirrors: Sequence[str] = ()) -> Path:
    """The folder of these artifacts' jars (group:artifact -> version) and of all that they need.

    `mirrors` are ids of repositories that the artifacts name as copies of Maven Central; They are replaced by Central
    itself, because Maven fails if one of them cannot be reached.
    """
    folder = FOLDER / name
    lib, pom, done = folder / "lib", folder / "pom.xml", folder / "done"
    dependencies = "".join(_DEPENDENCY.format(*key.split(":"), version) for key, version in artifacts.items())
    central = _CENTRAL.format("".join(_REPOSITORY.format(mirror) for mirror in mirrors)) if mirrors else ""
    wanted = _POM.format(dependencies, central)
    if done.exists() and pom.read_text() == wanted:
        return lib
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise NotAvailableError(f"{program} is not installed: {what} is fetched with Maven, run by Java")
    folder.mkdir(parents=True, exist_ok=True)
    pom.write_text(wanted)
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={lib}"]
    fetched = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        raise NotAvailableError(f"Maven could not fetch {what}:\n{(fetched.stdout + fetched.stderr)[-2000:]}")
    done.touch()
    return lib

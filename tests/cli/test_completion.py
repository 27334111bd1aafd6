"""`quire completion`: the scripts, and what they complete."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import PATIENCE_S, QUIRE, environment, quire

SHELLS = ("bash", "zsh", "fish")


def completed(*words: str, servers: str = "127.0.0.1:1") -> list[str]:
    """What bash offers for the last of these words."""
    variables = {
        "_QUIRE_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
        "QUIRE_BOOTSTRAP": servers,
    }
    done = subprocess.run(QUIRE, capture_output=True, env=environment(variables), timeout=PATIENCE_S)
    assert done.stderr == b""
    return [line.partition(",")[2] for line in done.stdout.decode().splitlines() if line]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_valid_in_its_shell(shell: str) -> None:
    script = quire("completion", shell)
    assert (script.returncode, script.stderr) == (0, b"")
    assert f"_QUIRE_COMPLETE={shell}_complete".encode() in script.stdout
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n"], input=script.stdout, check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_with_the_script() -> None:
    script = quire("completion", "bash").stdout.decode()
    typed = 'COMP_WORDS=(quire topics cr); COMP_CWORD=2; _quire_completion quire; echo "${COMPREPLY[@]}"'
    variables = environment()
    variables["PATH"] = f"{Path(sys.executable).parent}:{variables['PATH']}"
    done = subprocess.run(["bash", "-c", f"{script}\n{typed}"], capture_output=True, env=variables, timeout=PATIENCE_S)
    assert (done.stdout, done.stderr) == (b"create\n", b"")


def test_another_shell_is_refused() -> None:
    assert quire("completion", "csh").returncode == 2


def test_commands_options_and_choices_are_completed() -> None:
    assert completed("quire", "top") == ["topics"]
    assert completed("quire", "groups", "de") == ["delete", "delete-offsets", "describe"]
    assert "--from-beginning" in completed("quire", "consume", "orders", "--from")
    assert completed("quire", "consume", "orders", "--format", "j") == ["json"]


def test_topics_and_groups_are_completed_from_the_cluster(servers: str) -> None:
    assert quire("topics", "create", "orders", "others", servers=servers).returncode == 0
    reset = ("groups", "reset-offsets", "readers", "--topic", "orders", "--to-latest", "--execute")
    assert quire(*reset, servers=servers).returncode == 0
    assert completed("quire", "consume", "o", servers=servers) == ["orders", "others"]
    assert completed("quire", "topics", "describe", "orders", "ot", servers=servers) == ["others"]
    assert completed("quire", "groups", "describe", "", servers=servers) == ["readers"]
    assert completed("quire", "consume", "-b", servers, "or") == ["orders"]


def test_without_a_cluster_names_are_not_completed_and_nothing_is_printed() -> None:
    assert completed("quire", "consume", "o") == []

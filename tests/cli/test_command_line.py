"""Parsing, help and errors of `quire`, without a cluster."""

import json
import platform
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from quire import __version__
from quire.cli.main import COMMANDS, quire
from tests.cli.command import every_command

NOBODY = "127.0.0.1:1"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(quire, arguments, prog_name="quire")


@pytest.mark.parametrize("command", list(every_command(quire, COMMANDS)), ids=" ".join)
def test_every_command_explains_itself_with_an_example(command: list[str]) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: quire {' '.join(command)}")
    is_group = "COMMAND [ARGS]" in result.output
    assert "Example" in result.output
    assert not (is_group and "..." in result.output.partition("Commands:")[2].partition("Example")[0]), (
        "a summary is cut off"
    )


def test_the_root_names_every_command_the_exit_codes_and_the_version() -> None:
    result = run("--help")
    assert all(name in result.output for name in COMMANDS)
    assert "130 interrupted" in result.output
    assert run("--version").output.startswith("quire ")


def test_the_version_is_a_command_too_and_says_what_it_runs_on() -> None:
    shown = run("version").output.splitlines()
    assert shown[0] == run("--version").output.strip() == f"quire {__version__}"
    assert platform.python_version() in run("version").output
    described = json.loads(run("version", "--json").output)
    assert described["quire"] == __version__ and isinstance(described["compiled"], bool)


@pytest.mark.parametrize("module", ["quire", "quire.cli.main"])
def test_python_runs_the_package_as_the_command(module: str, tmp_path: Path) -> None:
    """Runs in a separate folder, where only the installed package can be found."""
    done = subprocess.run([sys.executable, "-m", module, "topics", "-h"], capture_output=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"Usage: quire topics ")


def test_summaries_in_the_list_are_those_of_the_commands() -> None:
    context = click.Context(quire)
    for name, entry in COMMANDS.items():
        command = quire.get_command(context, name)
        assert command is not None and command.help
        assert len(entry.summary) < 60


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["topics", "create"],
        ["topics", "create", "t", "--partitions", "0"],
        ["topics", "create", "t", "--config", "novalue"],
        ["topics", "create", "t", "--partitions", "2", "--replica-assignment", "1:2"],
        ["topics", "alter", "t"],
        ["configs", "describe", "planet", "x"],
        ["configs", "describe", "topic"],
        ["configs", "describe", "brokers", "1"],
        ["configs", "alter", "topic", "t"],
        ["configs", "describe", "broker", "one"],
        ["produce"],
        ["produce", "t", "--acks", "2"],
        ["produce", "t", "--compression", "rar"],
        ["produce", "t", "--file", "/does/not/exist"],
        ["produce", "t", "--key-separator", ""],
        ["consume", "t", "--from-beginning", "--from-offset", "3"],
        ["consume", "t", "--from-timestamp", "yesterday"],
        ["consume", "t", "--where", "nonsense"],
        ["consume", "t", "--format", "xml"],
        ["consume", "t", "--format", "text", "--json"],
        ["consume", "t", "--format", "hex", "--json-values"],
        ["consume", "t", "--order", "size"],
        ["consume", "t", "--count", "0"],
        ["consume", "t", "--group", "g", "--from-offset", "3"],
        ["consume", "t", "--group", ""],
        ["consume", "t", "--group", "g", "--partition", "0"],
        ["topics", "list", "-b", "no port:"],
        ["topics", "list", "--timeout", "0"],
        ["groups", "describe", "--interval", "0"],
        ["groups", "list", "--state", "sleepy"],
        ["groups", "delete"],
        ["groups", "delete-offsets", "g"],
        ["groups", "delete-offsets", "g", "--topic", "t:x"],
        ["groups", "reset-offsets", "g"],
        ["groups", "reset-offsets", "g", "--topic", "t"],
        ["groups", "reset-offsets", "g", "--to-earliest"],
        ["groups", "reset-offsets", "g", "--topic", "t", "--to-earliest", "--to-latest"],
        ["groups", "reset-offsets", "g", "--topic", "t", "--all-topics", "--to-earliest"],
        ["groups", "reset-offsets", "g", "--topic", "t", "--to-offset", "-1"],
        ["groups", "reset-offsets", "g", "--topic", "t", "--by-duration", "soon"],
        ["groups", "reset-offsets", "g", "--topic", "t", "--to-earliest", "--dry-run", "--execute"],
        ["groups", "reset-offsets", "g", "--topic", "t", "--to-earliest", "--json", "--export"],
        ["groups", "reset-offsets", "g", "--from-file", "/does/not/exist"],
        ["groups", "reset-offsets", "g", "--from-file", "/dev/null"],
        ["transactions", "describe"],
        ["transactions", "list", "--state", "sleepy"],
        ["transactions", "list", "--pattern", "copier-("],
        ["transactions", "abort", "t", "--partition", "0"],
        ["transactions", "describe-producers", "t:"],
        ["start", "--config", "/does/not/exist"],
        ["start", "--set", "novalue"],
        ["start", "--listen", "nowhere"],
        ["start", "--listen", "127.0.0.1:99999"],
        ["storage", "format", "--set", "novalue"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2_and_no_traceback(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["consume", "t", "-p", "abc"], "'abc' is not a whole number of at least 0"),
        (["topics", "create", "t", "--partitions", "0"], "'0' is not a whole number of at least 1"),
        (["topics", "list", "--timeout", "soon"], "'soon' is not a number above 0"),
        (["consume", "t", "--json", "--format", "hex"], "--json and --format hex contradict each other"),
    ],
)
def test_wrong_usage_is_answered_with_what_is_allowed(arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (["topic"], "topics"),
        (["comsume"], "consume"),
        (["topics", "lst"], "list"),
        (["groups", "reset"], "reset-offsets"),
        (["transactions", "force"], "force-terminate"),
    ],
)
def test_a_command_that_does_not_exist_is_answered_with_the_nearest(arguments: list[str], nearest: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert f"did you mean {nearest}?" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["topics", "list"],
        ["topics", "create", "t"],
        ["topics", "describe", "t", "--json"],
        ["topics", "delete", "t", "--yes"],
        ["configs", "describe", "broker", "1"],
        ["consume", "t", "--from-beginning"],
        ["cluster"],
        ["groups", "list"],
        ["groups", "describe", "g", "--watch"],
        ["groups", "reset-offsets", "g", "--topic", "t", "--to-earliest", "--execute"],
        ["transactions", "list"],
        ["transactions", "abort", "t", "-p", "0", "--start-offset", "1"],
    ],
    ids=" ".join,
)
def test_an_unreachable_node_is_exit_code_3_and_one_helpful_sentence(arguments: list[str]) -> None:
    result = run(*arguments, "-b", NOBODY)
    assert result.exit_code == 3
    assert result.stderr.count("\n") == 1
    assert f"{NOBODY} is not reachable: connection refused" in result.stderr
    assert "quire start" in result.stderr
    assert result.stdout == ""


def test_the_bootstrap_servers_come_from_the_environment_too() -> None:
    result = CliRunner(env={"QUIRE_BOOTSTRAP": NOBODY}).invoke(quire, ["topics", "list"])
    assert NOBODY in result.stderr


def modules_after(*arguments: str) -> set[str]:
    """The modules that `quire ARGUMENTS` has imported when it ends."""
    script = (
        "import json, sys\n"
        "sys.argv = ['quire', *json.loads(sys.argv[1])]\n"
        "from quire.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, json.dumps(arguments)], capture_output=True, check=True)
    return set(json.loads(done.stderr.decode().splitlines()[-1]))


def test_help_imports_nothing_but_itself() -> None:
    imported = modules_after("--help")
    assert not {name for name in imported if name.startswith("quire.")} - {
        "quire.cli",
        "quire.cli.main",
        "quire.console",
        "quire.console.failure",
        "quire.console.groups",
        "quire.console.stopping",
    }
    assert not imported & {"asyncio", "uvloop", "socket", "logging", "json.decoder"} - {"json.decoder"}


def test_start_loads_no_client_and_a_client_command_no_node() -> None:
    assert not {name for name in modules_after("start", "--help") if name.startswith("quire.client")}
    for_topics = modules_after("topics", "list", "-b", NOBODY)
    assert not {
        name for name in for_topics if name.startswith(("quire.node", "quire.storage", "quire.raft", "asyncio"))
    }

"""Every example in every --help: all of them parse, and those that end by themselves work on a fresh node."""

import shlex
import subprocess
import sys
from pathlib import Path

import click
import confluent_kafka
import pytest
from click.testing import CliRunner

from quire.cli.main import quire
from quire.real.disk import RealDisk
from tests.cli.command import PATIENCE_S, command_of, environment, every_epilog, examples_in
from tests.cli.tree import commands
from tests.storage.batches import append_values, open_log

RUNS_ON = ("quire start", "--follow", "--watch", "tail -f")
ELSEWHERE = ("/var/lib", "broker-1:9092")
SPARKS = ("quire pipelines",)  # tests/spark has them
HANGS = ("quire transactions abort",)  # needs a hanging transaction, which a healthy node does not have
LARGER = (  # need more than one node
    "quire quorum add",
    "quire quorum remove",
    "quire brokers unregister",
    "quire disks move",  # and two directories
    "quire cluster restart",
    "quire cluster check-restart",
    "quire partitions reassign",
)

NOT_HERE = RUNS_ON + ELSEWHERE + HANGS + SPARKS + LARGER
EXAMPLES = list(dict.fromkeys(example for text in every_epilog(quire) for example in examples_in(text)))
FINITE = [example for example in EXAMPLES if not any(part in example for part in NOT_HERE)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With the files that examples read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.txt").write_text("one\ntwo\n")
    (tmp_path / "offsets.csv").write_text("orders,0,0\norders,1,0\n")
    (tmp_path / "plan.json").write_text('{"version": 1, "partitions": []}')
    (tmp_path / "users.txt").write_text("anna:1\nbert:2\n")
    (tmp_path / "server.properties").write_text(f"num.partitions=2\nlog.dirs={tmp_path}/data\n")
    return tmp_path


def test_examples_are_found() -> None:
    assert len(EXAMPLES) > 25
    assert "echo hello | quire produce greetings" in EXAMPLES
    assert "quire start" in EXAMPLES
    assert len(FINITE) > 15


@pytest.mark.parametrize(("name", "command"), [pytest.param(*each, id=each[0]) for each in commands()])
def test_the_help_of_every_command_has_an_example(name: str, command: click.Command) -> None:
    assert any(f"quire {name}" in example for example in examples_in(command.epilog or ""))


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_parses(example: str, folder: Path) -> None:
    command = example.rpartition("| ")[2].partition(" < ")[0].partition(" > ")[0]
    _, *arguments = shlex.split(command.replace("$(quire storage random-uuid)", "4L6g3nShT-eMCtK--X86sw"))
    found, arguments = command_of(quire, arguments)
    found.make_context(found.name, arguments)


@pytest.mark.parametrize("example", FINITE)
def test_an_example_that_ends_by_itself_works_on_a_fresh_node(example: str, folder: Path, servers: str) -> None:
    def prepare(*arguments: str) -> None:
        done = CliRunner(env={"QUIRE_BOOTSTRAP": servers}).invoke(quire, arguments)
        assert done.exit_code == 0, done.output

    if example.startswith(("quire dump-log", "quire verify")):
        prepare("storage", "format", "--data", "quire-data")
        log = open_log(RealDisk(), folder="quire-data/orders-0")
        append_values(log, b"one", b"two")
        log.close()
        log.close_files()
    topics = ("orders", "users", "audit", "orders.dlq")
    prepare("topics", "delete", "--yes", "--if-exists", *topics)
    if not example.startswith("quire topics create"):
        prepare("topics", "create", "-p", "4", *topics)
    if example.startswith("quire groups"):
        for group in ("readers", "auditors"):
            prepare("groups", "delete", "--yes", "--if-exists", group)
            prepare("groups", "reset-offsets", group, "--topic", "orders", "--to-latest", "--execute")
    if example.startswith("quire transactions"):
        confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": "copier"}).init_transactions(30)
    variables = environment({"QUIRE_BOOTSTRAP": servers})
    variables["PATH"] = f"{Path(sys.executable).parent}:{variables['PATH']}"
    done = subprocess.run(example, shell=True, cwd=folder, capture_output=True, timeout=PATIENCE_S, env=variables)
    not_formatted_yet = example.startswith("quire storage info") and done.returncode == 4
    assert done.returncode == 0 or not_formatted_yet, done.stderr.decode()

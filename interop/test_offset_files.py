"""Offsets in files go both ways between `quire groups reset-offsets` and Apache Kafka's tool for groups, on Quire."""

from pathlib import Path

from interop.apache_kafka import ApacheKafka
from quire.testing import Cluster
from tests.cli import command
from tests.cli.groups.group_members import commit
from tests.cli.groups.test_groups import committed, filled

TOOL = "consumer.group.ConsumerGroupCommand"


def test_files_that_kafkas_tool_exports_are_accepted(kafka: ApacheKafka, quire: Cluster, tmp_path: Path) -> None:
    servers = quire.bootstrap_servers
    topic = filled(servers, "exported", 9, 9)
    commit(servers, "exporter", topic, 3, 4)
    exported = kafka.tool(
        TOOL, "--bootstrap-server", servers, "--group", "exporter", "--topic", topic,
        "--reset-offsets", "--to-current", "--dry-run", "--export",
    )  # fmt: skip
    file = tmp_path / "offsets.csv"
    file.write_text(exported)
    done = command.quire("groups", "reset-offsets", "taker", "--from-file", str(file), "--execute", servers=servers)
    assert done.returncode == 0, done.stderr
    assert committed(servers, "taker") == {0: 3, 1: 4}


def test_exported_files_are_accepted_by_kafkas_tool(kafka: ApacheKafka, quire: Cluster, tmp_path: Path) -> None:
    servers = quire.bootstrap_servers
    topic = filled(servers, "given", 9, 9)
    commit(servers, "giver", topic, 5, 6)
    exported = command.quire(
        "groups", "reset-offsets", "giver", "--all-topics", "--to-current", "--export", servers=servers
    )
    file = tmp_path / "offsets.csv"
    file.write_bytes(exported.stdout)
    kafka.tool(
        TOOL, "--bootstrap-server", servers, "--group", "receiver",
        "--reset-offsets", "--from-file", str(file), "--execute",
    )  # fmt: skip
    assert committed(servers, "receiver") == {0: 5, 1: 6}

"""`quire start --config nodeN.properties`: the nodes of a cluster one by one, and set-ups that are wrong."""

import json
import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command import PATIENCE_S, QUIRE, environment, killed_at_the_end, quire, started
from tests.free_ports import free_ports

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
OTHER_ID = "JEXY6aqzQY-32P5TStzaFg"


class Nodes:
    """Node 1 is a controller, 2 a broker, and 3 is both and joins later."""

    controller_process: "subprocess.Popen[bytes]"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.controller, self.second, self.third, self.third_controller = free_ports(4)
        self.write(1, "controller", f"CONTROLLER://127.0.0.1:{self.controller}")
        self.write(2, "broker", f"PLAINTEXT://127.0.0.1:{self.second}")
        self.write(
            3,
            "broker,controller",
            f"PLAINTEXT://127.0.0.1:{self.third},CONTROLLER://127.0.0.1:{self.third_controller}",
        )

    def write(self, node: int, roles: str, listeners: str, name: str = "", node_id: int | None = None) -> None:
        servers = f"127.0.0.1:{self.controller}"
        if node == 3:
            servers += f",127.0.0.1:{self.third_controller}"
        (self.folder / f"node{name or node}.properties").write_text(
            f"process.roles={roles}\nnode.id={node_id or node}\nlisteners={listeners}\n"
            "controller.listener.names=CONTROLLER\n"
            f"controller.quorum.bootstrap.servers={servers}\n"
            f"log.dirs={self.folder}/data{name or node}\noffsets.topic.replication.factor=1\n"
        )

    def path(self, name: int | str) -> str:
        return str(self.folder / f"node{name}.properties")

    def format(self, name: int | str, *options: str, cluster_id: str = CLUSTER_ID) -> None:
        done = quire("storage", "format", "--config", self.path(name), "--cluster-id", cluster_id, *options)
        assert done.returncode == 0, done.stderr

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.second}"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """A controller and a broker that run."""
    found = Nodes(tmp_path_factory.mktemp("nodes"))
    found.format(1, "--standalone")
    found.format(2)
    with started("--config", found.path(1)) as first, started("--config", found.path(2)) as second:
        assert first.address == f"127.0.0.1:{found.controller}"
        assert second.address == found.servers
        found.controller_process = first.process
        yield found


@contextmanager
def joining(nodes: Nodes, name: int | str) -> Iterator["subprocess.Popen[bytes]"]:
    """A node that does not become ready."""
    command = [*QUIRE, "start", "--config", nodes.path(name)]
    with killed_at_the_end(
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
    ) as process:
        yield process


def first_line_with(process: "subprocess.Popen[bytes]", words: str) -> str:
    assert process.stderr is not None
    found = b""
    deadline = time.monotonic() + PATIENCE_S
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        while time.monotonic() < deadline:
            if selector.select(1):
                found += os.read(process.stderr.fileno(), 65536)
            for line in found.decode().splitlines():
                if words in line:
                    return line
    raise AssertionError(found.decode())


def test_a_controller_and_a_broker_are_a_cluster(nodes: Nodes) -> None:
    assert quire("topics", "create", "orders", servers=nodes.servers).returncode == 0
    described = json.loads(quire("quorum", "describe", "--json", servers=nodes.servers).stdout)
    assert [voter["id"] for voter in described["voters"]] == [1]
    assert [observer["id"] for observer in described["observers"]] == [2]


def test_a_node_joins_and_its_controller_is_added_to_the_quorum(nodes: Nodes) -> None:
    nodes.format(3, "--no-initial-controllers")
    with started("--config", nodes.path(3)) as third:
        assert third.address == f"127.0.0.1:{nodes.third}"
        added = quire("quorum", "add", f"3@127.0.0.1:{nodes.third_controller}", servers=nodes.servers)
        assert added.returncode == 0, added.stderr
        described = json.loads(quire("quorum", "describe", "--json", servers=nodes.servers).stdout)
        assert [voter["id"] for voter in described["voters"]] == [1, 3]
        removed = quire("quorum", "remove", "3", servers=nodes.servers)
        assert removed.returncode == 0, removed.stderr
        assert third.stop()[0] == 0


def test_data_of_another_cluster_is_named(nodes: Nodes) -> None:
    (port,) = free_ports(1)
    nodes.write(5, "broker", f"PLAINTEXT://127.0.0.1:{port}")
    nodes.format(5, cluster_id=OTHER_ID)
    with joining(nodes, 5) as process:
        line = first_line_with(process, "another cluster")
        refused = first_line_with(nodes.controller_process, "INCONSISTENT_CLUSTER_ID")
    assert "refused Fetch from node 5 at 127.0.0.1:" in refused and f"{CLUSTER_ID}, not {OTHER_ID}" in refused
    assert f"127.0.0.1:{nodes.controller} belongs to another cluster" in line and OTHER_ID in line
    assert quire("topics", "list", servers=nodes.servers).returncode == 0


def test_the_same_id_twice_is_named(nodes: Nodes) -> None:
    (port,) = free_ports(1)
    nodes.write(2, "broker", f"PLAINTEXT://127.0.0.1:{port}", name="2b")
    nodes.format("2b")
    with joining(nodes, "2b") as process:
        assert "a process with the same node.id is alive" in first_line_with(process, "DUPLICATE_BROKER_REGISTRATION")
        refused = first_line_with(nodes.controller_process, "DUPLICATE_BROKER_REGISTRATION")
    assert "refused BrokerRegistration from node 2 at 127.0.0.1:" in refused and "stop one of the two" in refused
    assert quire("topics", "list", servers=nodes.servers).returncode == 0


def test_a_changed_id_and_an_emptied_disk_are_named(nodes: Nodes) -> None:
    (port,) = free_ports(1)
    listeners = f"PLAINTEXT://127.0.0.1:{port}"
    nodes.write(6, "broker", listeners)
    nodes.format(6)
    nodes.write(6, "broker", listeners, node_id=7)
    changed = quire("start", "--config", nodes.path(6))
    assert changed.returncode == 1 and "data6 belongs to node 6; set node.id=6" in changed.stderr.decode()
    nodes.write(6, "broker", listeners)
    shutil.rmtree(nodes.folder / "data6")
    emptied = quire("start", "--config", nodes.path(6))
    assert emptied.returncode == 1 and "data6 is not formatted: run `quire storage format" in emptied.stderr.decode()

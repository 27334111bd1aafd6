from collections.abc import Sequence
from pathlib import Path

import pytest

from quire.cli.node.config import StartOptions
from quire.cli.node.local.description import Description
from quire.cli.node.local.plan import PlannedNode, first_voters, load_base, plan_nodes
from quire.cli.node.local.ports import ReservedPorts
from quire.config.errors import ConfigError
from quire.real.random import RealRandom


def planned(
    count: int, *assignments: str, listen: str | None = None, path: Path | None = None, ephemeral: bool = False
) -> list[PlannedNode]:
    options = StartOptions(None if path is None else str(path), assignments, "/d", listen, ephemeral)
    with ReservedPorts() as ports:
        base = load_base(options)
        voters = first_voters(base, count, ports, RealRandom())
        return plan_nodes(options, base, Description("AAAAAAAAAAAAAAAAAAAAAA", voters, count, 0), ports)


def listeners(node: PlannedNode) -> list[str]:
    topology = node.config.topology
    return [str(each) for each in (*topology.broker_listeners, *topology.controller_listeners)]


def test_nodes_are_ten_ports_apart_and_have_a_folder_each() -> None:
    nodes = planned(4)
    assert [node.config.node_id for node in nodes] == [1, 2, 3, 4]
    assert [listeners(node) for node in nodes] == [
        ["PLAINTEXT://127.0.0.1:9092", "CONTROLLER://127.0.0.1:9093"],
        ["PLAINTEXT://127.0.0.1:9102", "CONTROLLER://127.0.0.1:9103"],
        ["PLAINTEXT://127.0.0.1:9112", "CONTROLLER://127.0.0.1:9113"],
        ["PLAINTEXT://127.0.0.1:9122"],
    ]
    assert [node.config.log_dirs for node in nodes] == [(f"/d/node-{id_}",) for id_ in (1, 2, 3, 4)]
    assert {node.config.topology.bootstrap_servers for node in nodes} == {
        ("127.0.0.1:9093", "127.0.0.1:9103", "127.0.0.1:9113")
    }


@pytest.mark.parametrize(("count", "controllers"), [(1, [1]), (2, [1]), (3, [1, 2, 3]), (5, [1, 2, 3])])
def test_there_are_one_or_three_controllers_and_every_node_is_a_broker(count: int, controllers: Sequence[int]) -> None:
    nodes = planned(count)
    assert [node.id for node in nodes if node.config.topology.is_controller] == controllers
    assert all(node.config.topology.is_broker for node in nodes)


def test_settings_apply_to_all_nodes() -> None:
    for node in planned(3, "num.partitions=7"):
        assert node.config.get_int("num.partitions") == 7


REPLICATION = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
    "min.insync.replicas",
    "transaction.state.log.min.isr",
    "share.coordinator.state.topic.min.isr",
)


@pytest.mark.parametrize("ephemeral", [False, True])
@pytest.mark.parametrize(
    ("count", "replicas", "min_isr"), [(1, 1, 1), (2, 2, 1), (3, 3, 2), (5, 3, 2)], ids=["1", "2", "3", "5"]
)
def test_from_three_nodes_on_all_topics_survive_the_loss_of_one(
    count: int, replicas: int, min_isr: int, ephemeral: bool
) -> None:
    for node in planned(count, ephemeral=ephemeral):
        assert [node.config.get_int(name) for name in REPLICATION] == [replicas] * 4 + [min_isr] * 3
        assert node.config.get_int("group.initial.rebalance.delay.ms") == 0


def test_replication_that_is_set_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("offsets.topic.replication.factor=2\n")
    for node in planned(3, "default.replication.factor=1", "min.insync.replicas=1", path=path):
        assert [node.config.get_int(name) for name in REPLICATION] == [1, 2, 3, 3, 1, 2, 2]


def test_all_ports_and_folders_shift_alike(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=9\ncontroller.listener.names=CONTROLLER\n"
        "controller.quorum.voters=9@localhost:5\n"
        "listeners=PLAINTEXT://:20000,SECOND://:20001,CONTROLLER://127.0.0.1:20005\n"
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SECOND:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
        "advertised.listeners=PLAINTEXT://a.example:30000,SECOND://b.example:30001\n"
    )
    node = planned(3, "metadata.log.dir=/m", path=path)[1]
    assert node.config.node_id == 2
    assert listeners(node) == ["PLAINTEXT://:20010", "SECOND://:20011", "CONTROLLER://127.0.0.1:20015"]
    assert [str(each) for each in node.config.topology.advertised_listeners] == [
        "PLAINTEXT://a.example:30010",
        "SECOND://b.example:30011",
    ]
    assert node.config.metadata_log_dir == "/m/node-2"


def test_an_advertised_address_is_that_of_the_first_node() -> None:
    nodes = planned(3, "advertised.listeners=PLAINTEXT://broker.example:9092")
    assert [str(each) for node in nodes for each in node.config.topology.advertised_listeners] == [
        f"PLAINTEXT://broker.example:{port}" for port in (9092, 9102, 9112)
    ]


def test_free_ports_are_chosen_for_all() -> None:
    nodes = planned(3, ephemeral=True)
    ports = [listener.rpartition(":")[2] for node in nodes for listener in listeners(node)]
    assert len(set(ports)) == 6 and "0" not in ports


@pytest.mark.parametrize(
    ("assignments", "listen", "why"),
    [
        (["node.id=4"], None, "--nodes and --set node.id=4 contradict each other"),
        (["process.roles=broker"], None, "--nodes sets process.roles itself"),
        (["controller.quorum.voters=1@localhost:1"], None, "contradict each other"),
        ([], "127.0.0.1:65520", "node 3 would listen at port 65541"),
        (["listeners=PLAINTEXT://:9092,CONTROLLER://127.0.0.1:9102"], None, "node-1 and node-2 would both listen at"),
        (["num.partitions=none"], None, "num.partitions"),
        (["default.replication.factor=4"], None, "default.replication.factor=4 cannot be reached with 3 nodes"),
        (["transaction.state.log.replication.factor=5"], None, "choose 3 or less, or start more nodes"),
    ],
)
def test_impossible_clusters_are_refused(assignments: list[str], listen: str | None, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        planned(3, *assignments, listen=listen)

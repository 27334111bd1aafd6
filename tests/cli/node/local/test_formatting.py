"""The folder of a local cluster is formatted once, and never again."""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from quire.cli.node.config import StartOptions
from quire.cli.node.local.description import FILE_NAME, read_description
from quire.cli.node.local.formatting import prepare_cluster
from quire.cli.node.local.plan import PlannedNode
from quire.cli.node.local.ports import ReservedPorts
from quire.cli.node.serve import NodeFailedError
from quire.config.broker_config import BrokerConfig
from quire.controller.format import format_node
from quire.raft.snapshot_file import read_snapshot
from quire.real.disk import RealDisk
from quire.real.random import RealRandom
from quire.storage.directory.meta_properties import MetaProperties, read_meta
from quire.storage.errors import DataDirectoryError

FIRST = "00000000000000000000-0000000000.checkpoint"


def prepare(
    folder: Path,
    count: int,
    listen: str = "127.0.0.1:19092",
    check_ports: Callable[[BrokerConfig], None] = lambda _: None,
) -> list[PlannedNode]:
    with ReservedPorts() as ports:
        return prepare_cluster(
            count,
            StartOptions(data=str(folder), listen=listen),
            ports,
            check_ports=check_ports,
            disk=RealDisk(),
            random=RealRandom(),
            now_ms=1,
        )


def metas(folder: Path, count: int) -> list[MetaProperties | None]:
    return [read_meta(RealDisk(), f"{folder}/node-{id_}") for id_ in range(1, count + 1)]


def voters_in(folder: Path, node_id: int) -> list[tuple[int, bytes, int]]:
    control = read_snapshot(RealDisk(), f"{folder}/node-{node_id}/__cluster_metadata-0", FIRST).control
    assert control.kraft_version == 1 and control.voters is not None
    return [(voter.key.id, voter.key.directory_id, voter.endpoints[0].port) for voter in control.voters]


def test_all_nodes_are_of_one_cluster_and_the_first_three_vote(tmp_path: Path) -> None:
    prepare(tmp_path, 4)
    found = metas(tmp_path, 4)
    assert len({meta.cluster_id for meta in found if meta is not None}) == 1 and None not in found
    expected = [(meta.node_id, meta.directory_id, 19083 + 10 * meta.node_id) for meta in found[:3] if meta is not None]
    assert all(voters_in(tmp_path, node_id) == expected for node_id in (1, 2, 3))
    assert not (tmp_path / "node-4" / "__cluster_metadata-0").exists()


def test_the_next_start_finds_what_the_first_has_formatted(tmp_path: Path) -> None:
    prepare(tmp_path, 3)
    before = metas(tmp_path, 3)
    again = prepare(tmp_path, 3, listen="127.0.0.1:29092")
    assert metas(tmp_path, 3) == before
    assert [node.config.topology.controller_listeners[0].port for node in again] == [19093, 19103, 19113]
    assert [node.config.topology.broker_listeners[0].port for node in again] == [29092, 29102, 29112]


def test_a_start_that_fails_leaves_no_folders(tmp_path: Path) -> None:
    def refuse(config: BrokerConfig) -> None:
        if config.node_id == 3:
            raise NodeFailedError("in use")

    with pytest.raises(NodeFailedError):
        prepare(tmp_path / "new", 3, check_ports=refuse)
    assert not (tmp_path / "new").exists()
    foreign = tmp_path / "foreign"
    (foreign / "node-3").mkdir(parents=True)
    (foreign / "node-3" / "thesis.txt").touch()
    with pytest.raises(DataDirectoryError, match=r"contains thesis\.txt"):
        prepare(foreign, 3)
    assert [each.name for each in foreign.iterdir()] == ["node-3"]


def test_nodes_that_are_added_are_brokers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    prepare(tmp_path, 1)
    with caplog.at_level(logging.INFO):
        nodes = prepare(tmp_path, 3)
    assert caplog.messages == [
        f"{tmp_path} holds a cluster of 1 node: adding node-2, node-3 as brokers; the controllers are still node-1"
    ]
    assert [node.config.topology.is_controller for node in nodes] == [True, False, False]
    found = metas(tmp_path, 3)
    assert len({meta.cluster_id for meta in found if meta is not None}) == 1 and None not in found
    with pytest.raises(DataDirectoryError, match="a cluster of 3 nodes; start it with --nodes 3"):
        prepare(tmp_path, 2)


def test_a_directory_that_was_emptied_is_not_formatted_again(tmp_path: Path) -> None:
    prepare(tmp_path, 3)
    shutil.rmtree(tmp_path / "node-2")
    with pytest.raises(DataDirectoryError, match=r"node-2 is empty.* was formatted: restore it, or run `quire storage"):
        prepare(tmp_path, 3)
    assert not (tmp_path / "node-2").exists()


def test_the_directory_of_the_only_controller_cannot_be_formatted_again(tmp_path: Path) -> None:
    prepare(tmp_path, 2)
    shutil.rmtree(tmp_path / "node-1")
    with pytest.raises(DataDirectoryError, match=r"node-1 is empty.* restore it, or choose another folder with --data"):
        prepare(tmp_path, 2)


def test_formatting_that_was_interrupted_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_at_third(*arguments: object, **options: object) -> str:
        if len(list(tmp_path.glob("node-*"))) == 2:
            raise KeyboardInterrupt
        return format_node(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("quire.cli.node.local.formatting.format_node", fail_at_third)
    with pytest.raises(KeyboardInterrupt):
        prepare(tmp_path, 3)
    monkeypatch.undo()
    before = metas(tmp_path, 2)
    prepare(tmp_path, 3)
    after = metas(tmp_path, 3)
    assert after[:2] == before and None not in after
    assert len({tuple(voters_in(tmp_path, node_id)) for node_id in (1, 2, 3)}) == 1


def test_the_data_of_a_single_node_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(
        "version=1\ncluster.id=x\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n"
    )
    with pytest.raises(DataDirectoryError, match="the data directory of a single node"):
        prepare(tmp_path, 3)


def test_a_damaged_description_is_named(tmp_path: Path) -> None:
    prepare(tmp_path, 1)
    assert read_description(RealDisk(), str(tmp_path), "CONTROLLER") is not None
    (tmp_path / FILE_NAME).write_text("cluster.id=AAAAAAAAAAAAAAAAAAAAAA\n")
    with pytest.raises(DataDirectoryError, match=f"{FILE_NAME} is damaged"):
        prepare(tmp_path, 1)

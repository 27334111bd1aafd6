import json
import shutil
from pathlib import Path

from quire.controller.initial_voters import parse_initial_voters
from quire.raft.snapshot_file import read_snapshot
from quire.real.disk import RealDisk
from tests.cli.command import quire, started
from tests.free_ports import free_ports


def info(folder: Path) -> dict[str, object]:
    (described,) = json.loads(quire("storage", "info", "--data", str(folder), "--json").stdout)
    assert isinstance(described, dict)
    return described


def test_a_directory_is_formatted_once_for_one_node_and_started_on(tmp_path: Path) -> None:
    data = tmp_path / "data"
    cluster_id = quire("storage", "random-uuid").stdout.decode().strip()
    assert quire("storage", "info", "--data", str(data)).returncode == 4
    done = quire("storage", "format", "--data", str(data), "--cluster-id", cluster_id, "--node-id", "7")
    assert done.returncode == 0 and cluster_id in done.stdout.decode()
    assert info(data)["cluster_id"] == cluster_id and info(data)["node_id"] == 7
    with started("--data", str(data), "--listen", "127.0.0.1:0", "--set", "node.id=7") as node:
        described = json.loads(quire("cluster", "--json", servers=node.address).stdout)
    assert described["cluster_id"] == cluster_id
    assert described["nodes"][0]["id"] == 7


def test_the_folder_of_a_cluster_stands_for_its_nodes(tmp_path: Path) -> None:
    (tmp_path / "quire-cluster.properties").write_text("nodes=2\n")
    for node_id in (1, 2):
        node = ("--data", str(tmp_path / f"node-{node_id}"), "--node-id", str(node_id))
        assert quire("storage", "format", *node, "--cluster-id", "4L6g3nShT-eMCtK--X86sw").returncode == 0
    found = json.loads(quire("storage", "info", str(tmp_path), "--json").stdout)
    assert [each["node_id"] for each in found] == [1, 2]
    assert quire("verify", str(tmp_path)).returncode == 0
    shutil.rmtree(tmp_path / "node-2")
    verified = quire("verify", str(tmp_path))
    assert (verified.returncode, verified.stderr.decode()) == (4, f"quire: {tmp_path}/node-2 does not exist.\n")


def test_a_formatted_directory_is_not_formatted_again(tmp_path: Path) -> None:
    quire("storage", "format", "--data", str(tmp_path))
    before = info(tmp_path)
    assert json.loads(quire("storage", "info", str(tmp_path), "--json").stdout) == [before]
    assert quire("storage", "info", str(tmp_path), "--data", str(tmp_path)).returncode == 2
    again = quire("storage", "format", "--data", str(tmp_path))
    assert again.returncode == 1 and "--ignore-formatted" in again.stderr.decode()
    assert quire("storage", "format", "--data", str(tmp_path), "--ignore-formatted").returncode == 0
    assert info(tmp_path) == before


def test_another_nodes_or_clusters_directory_is_not_taken(tmp_path: Path) -> None:
    quire("storage", "format", "--data", str(tmp_path))
    other_node = quire("storage", "format", "--data", str(tmp_path), "--node-id", "2", "--ignore-formatted")
    assert other_node.returncode == 1 and "belongs to node 1" in other_node.stderr.decode()
    other_cluster = quire(
        "storage", "format", "--data", str(tmp_path), "--cluster-id", "4L6g3nShT-eMCtK--X86sw", "--ignore-formatted"
    )
    assert other_cluster.returncode == 1 and "belongs to cluster" in other_cluster.stderr.decode()


def test_following_the_advice_about_a_damaged_meta_properties_repairs_the_node(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with started("--data", str(data), "--listen", "127.0.0.1:0") as node:
        quire("topics", "create", "orders", servers=node.address)
        cluster_id = json.loads(quire("cluster", "--json", servers=node.address).stdout)["cluster_id"]
    (data / "meta.properties").write_bytes(b"")
    for command in (["start", "--listen", "127.0.0.1:0"], ["storage", "format"], ["storage", "info"]):
        refused = quire(*command, "--data", str(data))
        assert refused.returncode == 1
        assert "run `quire storage format` to write it again, with --cluster-id" in refused.stderr.decode()
    (data / "meta.properties").unlink()
    assert (
        "let `quire storage format` write it again"
        in quire("start", "--listen", "127.0.0.1:0", "--data", str(data)).stderr.decode()
    )
    assert quire("storage", "format", "--data", str(data), "--cluster-id", cluster_id).returncode == 0
    with started("--data", str(data), "--listen", "127.0.0.1:0") as node:
        assert b"orders" in quire("topics", "list", servers=node.address).stdout


def test_a_folder_with_foreign_files_is_neither_formatted_nor_started_on(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for command in (["start", "--listen", "127.0.0.1:0"], ["storage", "format"]):
        refused = quire(*command, "--data", str(tmp_path))
        assert (refused.returncode, "contains notes.txt" in refused.stderr.decode()) == (1, True)
        assert not (tmp_path / "meta.properties").exists()


def test_a_place_below_a_file_can_be_no_data_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    for command in ("format", "info"):
        refused = quire("storage", command, "--data", str(tmp_path / "file" / "data"))
        assert refused.returncode == 1
        assert "it or a folder above it is a file; change --data." in refused.stderr.decode()


def test_a_cluster_id_must_be_a_uuid(tmp_path: Path) -> None:
    result = quire("storage", "format", "--data", str(tmp_path), "--cluster-id", "mine")
    assert (
        result.returncode == 2
        and "'mine' is not a UUID; create one with `quire storage random-uuid`" in result.stderr.decode()
    )
    assert not list(tmp_path.iterdir())


def test_random_ids_differ_and_can_be_passed_as_arguments() -> None:
    found = {quire("storage", "random-uuid").stdout.decode().strip() for _ in range(3)}
    assert len(found) == 3
    assert all(len(each) == 22 and not each.startswith("-") for each in found)


ONE, TWO = "JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A"
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
VOTERS = f"1@127.0.0.1:9093:{ONE},2@127.0.0.1:9103:{TWO}"


def node_file(folder: Path, node_id: int = 1, **changes: str | None) -> str:
    settings = {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://127.0.0.1:{9082 + 10 * node_id},CONTROLLER://127.0.0.1:{9083 + 10 * node_id}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:9093,127.0.0.1:9193",
        "log.dirs": str(folder / "data"),
    } | {name.replace("_", "."): value for name, value in changes.items()}
    path = folder / f"node{node_id}.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items() if value is not None))
    return str(path)


def test_a_controller_of_several_is_formatted_with_the_first_voters(tmp_path: Path) -> None:
    config = node_file(tmp_path, 2)
    done = quire("storage", "format", "-c", config, "--cluster-id", CLUSTER_ID, "--initial-controllers", VOTERS)
    assert done.returncode == 0, done.stderr
    assert (info(tmp_path / "data")["node_id"], info(tmp_path / "data")["directory_id"]) == (2, TWO)
    folder = str(tmp_path / "data" / "__cluster_metadata-0")
    written = read_snapshot(RealDisk(), folder, "00000000000000000000-0000000000.checkpoint").control
    assert written.kraft_version == 1 and written.voters == parse_initial_voters(VOTERS, "CONTROLLER")


def test_the_first_of_several_controllers_says_how_the_others_join_it(tmp_path: Path) -> None:
    done = quire("storage", "format", "-c", node_file(tmp_path), "--cluster-id", CLUSTER_ID, "--standalone")
    assert done.returncode == 0 and b"Node 1 is a quorum of its own. Format the other nodes" in done.stderr
    alone = quire("storage", "format", "--data", str(tmp_path / "alone"), "--standalone")
    assert alone.returncode == 0 and alone.stderr == b""


def test_a_node_that_joins_is_formatted_without_voters(tmp_path: Path) -> None:
    broker = {"process_roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:9292"}
    static = {
        "controller_quorum_voters": "1@127.0.0.1:9093,2@127.0.0.1:9193",
        "controller_quorum_bootstrap_servers": None,
    }
    cases: list[tuple[dict[str, str | None], list[str]]] = [
        ({}, ["--no-initial-controllers"]),
        ({**broker}, []),
        ({**broker}, ["--no-initial-controllers"]),
        ({**static}, []),
    ]
    for number, (changes, options) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = quire(
            "storage",
            "format",
            "-c",
            node_file(folder, 1 if static == changes else 3, **changes),
            "--cluster-id",
            CLUSTER_ID,
            *options,
        )
        assert done.returncode == 0, done.stderr
        assert not (folder / "data" / "__cluster_metadata-0").exists()


def test_formatting_that_would_not_make_a_cluster_says_what_to_do(tmp_path: Path) -> None:
    broker = {"process_roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:9292"}
    static = {"controller_quorum_voters": "1@127.0.0.1:9093,2@127.0.0.1:9193"}
    cases: list[tuple[dict[str, str | None], list[str], str]] = [
        ({}, ["--cluster-id", CLUSTER_ID], "add --initial-controllers with the controllers of a new cluster"),
        ({}, ["-I", VOTERS], "--cluster-id is missing"),
        ({}, ["--cluster-id", CLUSTER_ID, "-I", VOTERS, "--standalone"], "contradict each other"),
        ({}, ["--cluster-id", CLUSTER_ID, "-I", "1@127.0.0.1:9093"], "is not ID@HOST:PORT:DIRECTORY_ID"),
        ({}, ["--cluster-id", CLUSTER_ID, "-I", f"5@127.0.0.1:9093:{ONE}"], "does not name this controller, node 1"),
        ({}, ["--cluster-id", CLUSTER_ID, "-I", f"1@127.0.0.1:9092:{ONE}"], "this controller at port 9092, and its"),
        ({**static}, ["--cluster-id", CLUSTER_ID, "-I", VOTERS], "the quorum is static"),
        ({**broker}, ["--cluster-id", CLUSTER_ID, "--standalone"], "--standalone is for a controller"),
        ({**broker}, ["--cluster-id", CLUSTER_ID, "-I", VOTERS], "which is only a broker"),
        ({**broker}, [], "--cluster-id is missing"),
    ]
    for changes, options, advice in cases:
        refused = quire("storage", "format", "-c", node_file(tmp_path, 1, **changes), *options)
        assert refused.returncode == 2 and advice in refused.stderr.decode(), refused.stderr
        assert not (tmp_path / "data").exists()


def test_a_controller_of_several_does_not_format_itself(tmp_path: Path) -> None:
    clients, nodes = free_ports(2)
    both = {"listeners": f"PLAINTEXT://127.0.0.1:{clients},CONTROLLER://127.0.0.1:{nodes}"}
    broker = {"process_roles": "broker", "listeners": f"PLAINTEXT://127.0.0.1:{clients}"}
    static = {"controller_quorum_voters": "1@127.0.0.1:9093,2@127.0.0.1:9193"}
    cases: list[tuple[dict[str, str | None], str]] = [
        ({**both}, "with --no-initial-controllers if it exists already or this disk was lost"),
        ({**both, **static}, "if this disk was lost, restore it"),
        ({**broker}, "with the id of the cluster that this broker is to join"),
    ]
    for changes, advice in cases:
        refused = quire("start", "--config", node_file(tmp_path, 1, **changes))
        assert refused.returncode == 1, refused.stderr
        error = refused.stderr.decode()
        assert "data is not formatted" in error and advice in error, error
        assert not (tmp_path / "data").exists()

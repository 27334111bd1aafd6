import json
from pathlib import Path

from tests.cli.command import quire, started


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


def test_a_formatted_directory_is_left_alone(tmp_path: Path) -> None:
    quire("storage", "format", "--data", str(tmp_path))
    before = info(tmp_path)
    again = quire("storage", "format", "--data", str(tmp_path))
    assert again.returncode == 1 and "--ignore-formatted" in again.stderr.decode()
    assert quire("storage", "format", "--data", str(tmp_path), "--ignore-formatted").returncode == 0
    assert info(tmp_path) == before


def test_another_nodes_or_clusters_directory_is_not_taken(tmp_path: Path) -> None:
    quire("storage", "format", "--data", str(tmp_path))
    other_node = quire("storage", "format", "--data", str(tmp_path), "--node-id", "2", "--ignore-formatted")
    assert other_node.returncode == 1 and "belongs to node 1" in other_node.stderr.decode()
    other_cluster = quire(
        "storage", "format", "--data", str(tmp_path), "-t", "4L6g3nShT-eMCtK--X86sw", "--ignore-formatted"
    )
    assert other_cluster.returncode == 1 and "belongs to cluster" in other_cluster.stderr.decode()


def test_what_is_said_of_a_damaged_meta_properties_brings_the_node_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with started("--data", str(data), "--listen", "127.0.0.1:0") as node:
        quire("topics", "create", "orders", servers=node.address)
        cluster_id = json.loads(quire("cluster", "--json", servers=node.address).stdout)["cluster_id"]
    (data / "meta.properties").write_bytes(b"")
    for command in (["start"], ["storage", "format"], ["storage", "info"]):
        refused = quire(*command, "--data", str(data))
        assert refused.returncode == 1
        assert "remove it and let `quire storage format` write it anew, with --cluster-id" in refused.stderr.decode()
    (data / "meta.properties").unlink()
    assert "let `quire storage format` write it anew" in quire("start", "--data", str(data)).stderr.decode()
    assert quire("storage", "format", "--data", str(data), "--cluster-id", cluster_id).returncode == 0
    with started("--data", str(data), "--listen", "127.0.0.1:0") as node:
        assert b"orders" in quire("topics", "list", servers=node.address).stdout


def test_a_folder_with_somebody_elses_files_is_neither_formatted_nor_started_on(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for command in (["start"], ["storage", "format"]):
        refused = quire(*command, "--data", str(tmp_path))
        assert (refused.returncode, "holds notes.txt" in refused.stderr.decode()) == (1, True)
        assert not (tmp_path / "meta.properties").exists()


def test_a_place_below_a_file_can_be_no_data_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    for command in ("format", "info"):
        refused = quire("storage", command, "--data", str(tmp_path / "file" / "data"))
        assert refused.returncode == 1
        assert "it or a folder above it is a file; change --data." in refused.stderr.decode()


def test_a_cluster_id_must_be_a_uuid(tmp_path: Path) -> None:
    result = quire("storage", "format", "--data", str(tmp_path), "--cluster-id", "mine")
    assert result.returncode == 2 and "'mine' is not a UUID; `quire storage random-uuid`" in result.stderr.decode()
    assert not list(tmp_path.iterdir())


def test_random_ids_differ_and_can_be_passed_as_arguments() -> None:
    found = {quire("storage", "random-uuid").stdout.decode().strip() for _ in range(3)}
    assert len(found) == 3
    assert all(len(each) == 22 and not each.startswith("-") for each in found)

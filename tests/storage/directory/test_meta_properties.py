import pytest

from quire.protocol import uuids
from quire.storage.directory.meta_properties import MetaProperties, parse_meta, read_meta, write_meta
from quire.storage.errors import DataDirectoryError
from simulator.disk import SimDisk

META = MetaProperties("3Db5QLSqSZieL3rJBUUegA", 7, uuids.from_text("kYDlrdgMTVuWpIoDzcXjOw"))


def test_the_file_is_a_java_properties_file(disk: SimDisk) -> None:
    write_meta(disk, "data", META)
    assert disk.read_file("data/meta.properties") == (
        b"#\ncluster.id=3Db5QLSqSZieL3rJBUUegA\ndirectory.id=kYDlrdgMTVuWpIoDzcXjOw\nnode.id=7\nversion=1\n"
    )
    assert read_meta(disk, "data") == META


def test_kafkas_own_file_is_understood() -> None:
    content = (
        b"#\n#Tue Oct 14 11:05:09 UTC 2025\nnode.id=7\ndirectory.id=kYDlrdgMTVuWpIoDzcXjOw\nversion=1\n"
        b"cluster.id=3Db5QLSqSZieL3rJBUUegA\n"
    )
    assert parse_meta(content, "x") == META


def test_an_unformatted_directory_has_none(disk: SimDisk) -> None:
    assert read_meta(disk, "data") is None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no version"),
        (b"version=0\nbroker.id=7\n", "version 0"),
        (b"version=1\nnode.id=7\n", "no cluster.id"),
        (b"version=1\ncluster.id=x\nnode.id=seven\ndirectory.id=kYDlrdgMTVuWpIoDzcXjOw\n", "seven"),
        (b"version=1\ncluster.id=x\nnode.id=7\ndirectory.id=short\n", "short"),
        (b"\xff\xfe", "cannot be understood"),
    ],
)
def test_errors_say_what_is_wrong(content: bytes, says: str) -> None:
    with pytest.raises(DataDirectoryError, match=says):
        parse_meta(content, "data/meta.properties")


def test_another_nodes_or_clusters_directory_is_refused() -> None:
    META.check("data", cluster_id=META.cluster_id, node_id=7)
    META.check("data")
    with pytest.raises(DataDirectoryError, match=r"node\.id=7"):
        META.check("data", node_id=8)
    with pytest.raises(DataDirectoryError, match="cluster 3Db5"):
        META.check("data", cluster_id="another")

"""A node was down for so long that the others have deleted the records it lacks: it continues from their snapshot."""

from pathlib import Path

from tests.crash.admin_load import AdminLoad
from tests.crash.everything_is_there import assert_everything_is_there
from tests.crash.metadata_files import MetadataFiles
from tests.crash.real_cluster import RealNode, running_cluster, wait_until

SHORT_LOG = {
    "metadata.log.max.record.bytes.between.snapshots": 10_000,
    "metadata.max.retention.bytes": 20_000,
    "internal.metadata.log.segment.bytes": 10_000,
}


def test_a_node_whose_next_records_are_deleted_everywhere_gets_a_snapshot(tmp_path: Path) -> None:
    with running_cluster(tmp_path, SHORT_LOG) as cluster:
        load = AdminLoad({node.id: node.address for node in cluster.nodes.values()})
        load.wait_for_more(20)
        active = cluster.wait_for_controller()
        away, *others = sorted(cluster.nodes.values(), key=lambda node: node.id == active)
        cluster.kill(away.id)
        missing = MetadataFiles(away.metadata_log).end_offset
        wait_until(lambda: all(start_of(node) > missing for node in others), "the metadata log is not deleted")
        cluster.start(away.id)
        load.wait_for_more(20)
        assert start_of(away) > missing, "it has no records from before the snapshot"
        assert_everything_is_there(cluster, load)


def start_of(node: RealNode) -> int:
    """The base offset of the oldest segment of its metadata log."""
    return min(int(segment.stem) for segment in node.metadata_log.glob("*.log"))

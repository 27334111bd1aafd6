"""A broker with several data directories reports to the controller where its replicas are."""

from quire.metadata.partition_image import UNASSIGNED_DIRECTORY
from quire.node.partitions import opening
from quire.protocol.errors import ErrorCode
from tests.node.conftest import SimulatedNode
from tests.node.partitions.test_opening import written_to

SETTINGS = {"log.dirs": "/one,/two"}


def in_image(node: SimulatedNode, topic: str) -> list[bytes]:
    return [each.directories[0] for _, each in sorted(node.node.image.topics_by_name[topic].partitions.items())]


def on_disk(node: SimulatedNode, topic: str) -> list[bytes]:
    ids = []
    for partition in node.node.partitions.of_topic(topic):
        meta = node.node.partitions.directory_of(partition).meta
        assert meta is not None
        ids.append(meta.directory_id)
    return ids


def test_the_image_has_the_directory_of_every_replica() -> None:
    node = SimulatedNode(settings=SETTINGS).start()
    count = 3 * opening.LOGS_PER_TURN
    node.create_topic("t", partitions=count)
    assert in_image(node, "t") == [UNASSIGNED_DIRECTORY] * count
    node.clock.run_until(lambda: UNASSIGNED_DIRECTORY not in in_image(node, "t"))
    assert in_image(node, "t") == on_disk(node, "t")
    assert len(set(on_disk(node, "t"))) == 2
    assert {each.leader_epoch for each in node.node.image.topics_by_name["t"].partitions.values()} == {0}


def test_a_report_that_reaches_no_controller_is_sent_again() -> None:
    node = SimulatedNode(settings=SETTINGS).start()
    node.create_topic("t", partitions=2)
    node.node.metadata.leader_changed(None, 98)
    node.clock.run_for(5_000)
    assert in_image(node, "t") == [UNASSIGNED_DIRECTORY] * 2
    node.node.metadata.leader_changed(1, 99)
    node.clock.run_until(lambda: in_image(node, "t") == on_disk(node, "t"))


def test_a_failed_directory_takes_its_replicas_out_of_service() -> None:
    node = SimulatedNode(settings=SETTINGS).start()
    node.create_topic("t", partitions=2)
    node.clock.run_until(lambda: in_image(node, "t") == on_disk(node, "t"))
    failed = node.node.partitions.directories()[1]
    failed.fail(OSError("broken"))
    node.clock.run_until(
        lambda: sorted(each.leader for each in node.node.image.topics_by_name["t"].partitions.values()) == [-1, 1]
    )
    partitions = node.node.image.topics_by_name["t"].partitions
    errors = {each.leader: written_to(node, index) for index, each in partitions.items()}
    assert errors == {1: ErrorCode.NONE, -1: ErrorCode.KAFKA_STORAGE_ERROR}


def test_a_directory_that_fails_before_its_replicas_were_reported_takes_them_out_of_service_too() -> None:
    node = SimulatedNode(settings=SETTINGS).start()
    node.create_topic("t", partitions=2)
    node.node.metadata.leader_changed(None, 98)
    node.node.partitions.directories()[1].fail(OSError("broken"))
    node.clock.run_for(5_000)
    node.node.metadata.leader_changed(1, 99)
    node.clock.run_until(
        lambda: sorted(each.leader for each in node.node.image.topics_by_name["t"].partitions.values()) == [-1, 1]
    )


def test_a_broker_with_one_directory_has_nothing_to_report(node: SimulatedNode) -> None:
    node.create_topic("t")
    offset = node.node.image.offset
    assert in_image(node, "t") == on_disk(node, "t")
    node.clock.run_for(10_000)
    assert node.node.image.offset == offset

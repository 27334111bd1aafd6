from quire.address import Address
from quire.client.metadata import Metadata
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

FIRST_ID, SECOND_ID = b"1" * 16, b"2" * 16


def answer(leader: int, epoch: int, topic_id: bytes = FIRST_ID, error: ErrorCode = ErrorCode.NONE) -> MetadataResponse:
    part = MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch, replica_nodes=[1, 2])
    topic = MetadataResponseTopic(name="t", topic_id=topic_id, partitions=[part], error_code=error)
    brokers = [MetadataResponseBroker(node_id=node, host=f"h{node}", port=9092) for node in (1, 2)]
    return MetadataResponse(brokers=brokers, cluster_id="c", controller_id=2, topics=[topic])


def test_brokers_leaders_and_ids_are_taken_over() -> None:
    metadata = Metadata()
    metadata.apply(answer(1, 5))
    assert metadata.brokers[2].address == Address("h2", 9092)
    assert (metadata.cluster_id, metadata.controller_id) == ("c", 2)
    assert metadata.leader("t", 0) == 1
    assert metadata.leader_epoch("t", 0) == 5
    assert metadata.names_by_id[FIRST_ID] == "t"


def test_an_unknown_or_leaderless_partition_has_no_known_leader() -> None:
    metadata = Metadata()
    assert metadata.leader("t", 0) is None
    metadata.apply(answer(-1, 5))
    assert metadata.leader("t", 0) is None
    assert metadata.leader("t", 1) is None
    assert metadata.leader_epoch("t", 1) == -1


def test_an_answer_from_a_broker_that_is_behind_does_not_bring_a_deposed_leader_back() -> None:
    metadata = Metadata()
    metadata.apply(answer(2, 6))
    metadata.apply(answer(1, 5))
    assert metadata.leader("t", 0) == 2


def test_a_topic_made_again_under_its_name_starts_with_new_epochs() -> None:
    metadata = Metadata()
    metadata.apply(answer(2, 6))
    metadata.apply(answer(1, 0, SECOND_ID))
    assert metadata.leader("t", 0) == 1
    assert FIRST_ID not in metadata.names_by_id
    assert metadata.names_by_id[SECOND_ID] == "t"


def test_a_deleted_topic_is_forgotten() -> None:
    metadata = Metadata()
    metadata.apply(answer(1, 5))
    metadata.apply(answer(1, 5, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    assert metadata.topics == {}


def test_a_leader_named_while_refusing_counts_only_if_it_is_newer_and_known() -> None:
    metadata = Metadata()
    metadata.apply(answer(1, 5))
    assert not metadata.new_leader("t", 0, 2, 5)
    assert not metadata.new_leader("t", 0, 9, 6)
    assert not metadata.new_leader("other", 0, 2, 6)
    assert metadata.leader("t", 0) == 1
    assert metadata.new_leader("t", 0, 2, 6)
    assert metadata.leader("t", 0) == 2


def test_an_error_in_the_place_of_partitions_does_not_make_a_topic_empty() -> None:
    metadata = Metadata()
    metadata.apply(answer(1, 5))
    refused = answer(1, 5, error=ErrorCode.LEADER_NOT_AVAILABLE)
    refused.topics[0].partitions = []
    refused.brokers = []
    metadata.apply(refused)
    assert metadata.topics["t"].error == ErrorCode.LEADER_NOT_AVAILABLE
    assert metadata.leader("t", 0) == 1
    assert sorted(metadata.brokers) == [1, 2]

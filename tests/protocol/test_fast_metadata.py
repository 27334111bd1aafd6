"""Hand-tuned Metadata: the same bytes as the compiled encoder's, and used where it applies."""

import pytest
from hypothesis import given

from quire.protocol import codec
from quire.protocol.errors import EncodeError
from quire.protocol.fast_metadata import response_encoder
from quire.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.protocol.every_message import versions_of
from tests.protocol.strategies import messages
from tests.protocol.tuned import QUICK, TOPIC_ID, assert_encodes_alike, assert_in_use, compiled_bytes, never

tuned_versions = pytest.mark.parametrize("version", range(9, 14))


def response(*, partitions: int = 3, replicas: int = 2) -> MetadataResponse:
    nodes = list(range(replicas))
    topic = MetadataResponseTopic(
        name="topic",
        topic_id=TOPIC_ID,
        is_internal=True,
        partitions=[
            MetadataResponsePartition(
                partition_index=index, leader_id=1, replica_nodes=nodes, isr_nodes=nodes[:1], offline_replicas=nodes[1:]
            )
            for index in range(partitions)
        ],
    )
    broker = MetadataResponseBroker(node_id=1, host="localhost", port=9092, rack="a")
    return MetadataResponse(brokers=[broker], cluster_id="c" * 22, controller_id=1, topics=[topic, topic])


@pytest.mark.parametrize("version", versions_of(MetadataResponse))
def test_responses_of_any_kind_are_written_as_by_the_compiled_encoder(version: int) -> None:
    @QUICK
    @given(messages(MetadataResponse, version))
    def compare(response: MetadataResponse) -> None:
        assert_encodes_alike(response_encoder, response, version)

    compare()


@tuned_versions
def test_responses_take_the_short_way(version: int) -> None:
    assert_in_use(codec.encoder(MetadataResponse, version), response_encoder)
    for each in (response(), response(partitions=200), response(replicas=126)):
        out = bytearray()
        response_encoder(version, never)(each, out)
        assert out == compiled_bytes(each, version)


@tuned_versions
@pytest.mark.parametrize("replicas", range(5))
def test_partitions_whose_replicas_are_all_in_sync_take_the_short_way(version: int, replicas: int) -> None:
    each = response()
    for number, partition in enumerate(each.topics[0].partitions):
        partition.error_code, partition.leader_epoch = 8 + number, 5
        partition.replica_nodes = list(range(10, 10 + replicas))
        partition.isr_nodes = list(range(20, 20 + replicas))
        partition.offline_replicas = []
    out = bytearray()
    response_encoder(version, never)(each, out)
    assert out == compiled_bytes(each, version)


@tuned_versions
def test_lists_too_long_for_the_fast_path_are_encoded_too(version: int) -> None:
    assert codec.encode(response(replicas=127), version) == compiled_bytes(response(replicas=127), version)


@pytest.mark.parametrize(
    ("unfit", "problem"),
    [
        (MetadataResponse(controller_id=2**31), "'i' format requires"),
        (MetadataResponse(cluster_id="x" * 40_000), "cluster_id is longer than 32767 bytes"),
        (MetadataResponse(topics=[MetadataResponseTopic(error_code=2**15)]), "'h' format requires"),
    ],
)
def test_values_that_do_not_fit_are_refused(unfit: MetadataResponse, problem: str) -> None:
    with pytest.raises(EncodeError, match=f"^MetadataResponse version 12: {problem}"):
        codec.encode(unfit, 12)


def test_values_that_the_version_cannot_carry_are_refused() -> None:
    with pytest.raises(EncodeError, match="cluster_authorized_operations"):
        codec.encode(MetadataResponse(cluster_authorized_operations=3), 11)
    with pytest.raises(EncodeError, match="name must not be null"):
        codec.encode(MetadataResponse(topics=[MetadataResponseTopic(name=None)]), 11)

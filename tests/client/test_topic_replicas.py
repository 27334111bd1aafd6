"""The replicas of a topic, from brokers that name eligible replicas and from one that does not."""

import pytest

from quire.client.admin.topic_replicas import Replicas, describe_replicas
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError, ErrorCode
from quire.testing import Cluster
from tests.client.model_cluster import ModelCluster


def test_every_page_is_read() -> None:
    with Cluster(config={"max.request.partition.size.limit": 2}) as cluster:
        topic = cluster.create_topic(partitions=5)
        cluster.create_topic(f"{topic}-next")
        with BlockingClient(cluster.bootstrap_servers) as client:
            found = client.run(describe_replicas(client.cluster, topic))
            assert found == [Replicas(index, 1, (1,), (1,)) for index in range(5)]
            with pytest.raises(ApiError) as caught:
                client.run(describe_replicas(client.cluster, "never"))
            assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_broker_that_is_too_old_is_asked_for_metadata() -> None:
    model = ModelCluster(nodes=2)
    model.create("t", partitions=2)
    found = model.run(describe_replicas(model.client(), "t"))
    assert [(each.partition, each.leader, each.elr) for each in found] == [(0, 1, ()), (1, 2, ())]
    with pytest.raises(ApiError) as caught:
        model.run(describe_replicas(model.client(), "never"))
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

"""The first records of a controller."""

from quire.controller.bootstrap import activation_records
from quire.metadata.image import ClusterImage
from quire.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from quire.protocol.schema import Message
from tests.controller.images import CONFIG, cluster, setting


def level(name: str, feature_level: int) -> Message:
    return FeatureLevelRecord(name=name, feature_level=feature_level)


def test_an_empty_log_gets_the_features_in_one_transaction() -> None:
    features = [level("metadata.version", 30), level("group.version", 1)]
    written = activation_records(ClusterImage(), CONFIG, features, in_transaction=False)
    assert written == [BeginTransactionRecord(name="Bootstrap records"), *features, EndTransactionRecord()]


def test_eligible_leader_replicas_bring_the_minimum_isr_along() -> None:
    features = [level("metadata.version", 30), level("eligible.leader.replicas.version", 1)]
    written = activation_records(ClusterImage(), CONFIG, features, in_transaction=False)
    assert written[-2] == setting(4, "", "min.insync.replicas", "1")


def test_before_transactions_there_are_none() -> None:
    features = [level("metadata.version", 12)]
    assert activation_records(ClusterImage(), CONFIG, features, in_transaction=False) == features


def test_a_cluster_with_records_gets_no_bootstrap_records() -> None:
    features = [level("metadata.version", 30)]
    assert activation_records(cluster(), CONFIG, features, in_transaction=False) == []


def test_a_metadata_transaction_that_the_last_controller_left_open_is_aborted() -> None:
    written = activation_records(cluster(), CONFIG, [], in_transaction=True)
    assert [type(record) for record in written] == [AbortTransactionRecord]

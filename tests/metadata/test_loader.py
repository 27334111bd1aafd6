"""Committed batches become one image, and one call to each publisher."""

from dataclasses import dataclass

import pytest

from quire.metadata.delta import ImageDelta
from quire.metadata.image import ClusterImage
from quire.metadata.loader import MetadataLoader
from quire.metadata.snapshot import image_of, records_of
from quire.protocol.messages import metadata_records as records
from quire.protocol.schema import Message
from simulator.random import SimRandom
from tests.metadata.clusters import SEEDS, history


@dataclass
class OneBatch:
    last_offset: int
    records: list[Message]
    epoch: int = 1
    timestamp_ms: int = 5


def feature(level: int) -> records.FeatureLevelRecord:
    return records.FeatureLevelRecord(name="group.version", feature_level=level)


def subscribed() -> tuple[MetadataLoader, list[ImageDelta]]:
    loader = MetadataLoader()
    heard: list[ImageDelta] = []
    loader.subscribe(lambda image, delta: heard.append(delta))
    return loader, heard


def test_publishers_hear_once_of_many_batches() -> None:
    loader, heard = subscribed()
    loader.apply([OneBatch(0, []), OneBatch(1, [feature(1)]), OneBatch(2, [records.ProducerIdsRecord()])])
    assert len(heard) == 1
    assert list(heard[0].features) == ["group.version"] and heard[0].producer_ids
    assert (loader.image.offset, loader.image.epoch, loader.image.timestamp_ms) == (2, 1, 5)


def test_a_batch_that_says_nothing_moves_the_offset_silently() -> None:
    loader, heard = subscribed()
    loader.apply([OneBatch(0, [records.NoOpRecord()])])
    assert heard == []
    assert loader.image.offset == 0


def test_a_transaction_counts_when_it_ends() -> None:
    loader, heard = subscribed()
    loader.apply([OneBatch(1, [records.BeginTransactionRecord(), feature(1)])])
    assert loader.in_transaction and loader.image.features == {} and heard == []
    loader.apply([OneBatch(2, [records.EndTransactionRecord()])])
    assert not loader.in_transaction and loader.image.features == {"group.version": 1} and len(heard) == 1


def test_an_aborted_transaction_never_happened() -> None:
    loader, heard = subscribed()
    loader.apply([OneBatch(1, [records.BeginTransactionRecord(), feature(1)])])
    loader.apply([OneBatch(2, [records.AbortTransactionRecord(reason="a new leader")])])
    assert loader.image.features == {} and heard == []


def test_a_late_subscriber_gets_everything_that_exists() -> None:
    loader = MetadataLoader()
    loader.apply([OneBatch(1, [records.TopicRecord(name="orders", topic_id=b"t" * 16)])])
    heard: list[ImageDelta] = []
    loader.subscribe(lambda image, delta: heard.append(delta))
    assert heard[0].is_snapshot
    assert list(heard[0].created_topics) == [b"t" * 16]


def test_a_snapshot_that_lacks_a_topic_removes_it_at_once() -> None:
    loader, heard = subscribed()
    loader.apply([OneBatch(1, [records.TopicRecord(name="orders", topic_id=b"t" * 16)])])
    loader.load_snapshot(image_of([feature(1)], offset=9, epoch=2, timestamp_ms=7))
    assert list(heard[1].removed_topics) == [b"t" * 16]
    assert loader.image.topic("orders") is None


@pytest.mark.parametrize("seed", SEEDS)
def test_a_snapshot_and_the_rest_are_worth_the_whole_log(seed: int) -> None:
    told = history(seed)
    cut = SimRandom(seed).below(len(told) + 1)
    whole, resumed = MetadataLoader(), MetadataLoader()
    whole.apply([OneBatch(offset, [record]) for offset, record in enumerate(told)])
    prefix = image_of(told[:cut])
    resumed.load_snapshot(image_of(records_of(prefix), offset=cut - 1, epoch=1, timestamp_ms=5))
    resumed.apply([OneBatch(offset, [record]) for offset, record in enumerate(told) if offset >= cut])
    assert resumed.image == whole.image


@pytest.mark.parametrize("seed", SEEDS)
def test_every_difference_between_two_images_is_in_the_delta(seed: int) -> None:
    told = history(seed)
    loader, heard = subscribed()
    half = len(told) // 2
    loader.apply([OneBatch(offset, [record]) for offset, record in enumerate(told[:half])])
    before = loader.image.copy()
    heard.clear()
    loader.apply([OneBatch(half + offset, [record]) for offset, record in enumerate(told[half:])])
    delta = heard[0] if heard else ImageDelta()
    check_covered(before, loader.image, delta)


def check_covered(before: ClusterImage, after: ClusterImage, delta: ImageDelta) -> None:
    for topic_id in list(before.topics_by_id) + list(after.topics_by_id):
        old, new = before.topics_by_id.get(topic_id), after.topics_by_id.get(topic_id)
        if old is None and new is not None:
            assert topic_id in delta.created_topics
        if new is None:
            assert topic_id in delta.removed_topics
        for index, partition in (new.partitions if new else {}).items():
            if old is None or old.partitions.get(index) != partition:
                assert index in delta.partitions[topic_id]
    for resource in list(before.configs) + list(after.configs):
        if before.configs.get(resource) != after.configs.get(resource):
            assert resource in delta.configs
    for broker_id in list(before.brokers) + list(after.brokers):
        if before.brokers.get(broker_id) != after.brokers.get(broker_id):
            assert broker_id in delta.brokers
    for name in list(before.features) + list(after.features):
        if before.features.get(name) != after.features.get(name):
            assert name in delta.features

"""Random clusters: sequences of records that a controller could have written, from a seed."""

from collections.abc import Callable

from quire.metadata.delta import ImageDelta
from quire.metadata.image import ClusterImage
from quire.metadata.replay import replay
from quire.protocol.messages import metadata_records as records
from quire.protocol.schema import Message
from simulator.random import SimRandom

SEEDS = range(100)
NAMES = ["orders", "a.b", "a_b", "payments", "x"]


def history(seed: int, length: int = 60) -> list[Message]:
    """Records in a valid order, starting with the metadata version."""
    random = SimRandom(f"cluster {seed}")
    told: list[Message] = [records.FeatureLevelRecord(name="metadata.version", feature_level=30)]
    image = ClusterImage()
    replay(image, told[0], ImageDelta())
    while len(told) < length:
        record = random.choice(MAKERS)(random, image)
        if record is not None:
            told.append(record)
            replay(image, record, ImageDelta())
    return told


def _uuids(random: SimRandom, most: int = 2) -> list[bytes]:
    return [random.uuid() for _ in range(random.below(most + 1))]


def _maybe_uuids(random: SimRandom) -> list[bytes] | None:
    return _uuids(random) if random.chance(0.5) else None


def _replicas(random: SimRandom) -> list[int]:
    first = random.below(4)
    return [(first + step) % 4 for step in range(1 + random.below(3))]


def _maybe_replicas(random: SimRandom) -> list[int] | None:
    return _replicas(random) if random.chance(0.4) else None


def _feature(random: SimRandom, image: ClusterImage) -> Message:
    name = random.choice(["group.version", "transaction.version", "share.version"])
    return records.FeatureLevelRecord(name=name, feature_level=random.below(2))


def _broker(random: SimRandom, image: ClusterImage) -> Message:
    return records.RegisterBrokerRecord(
        broker_id=random.below(4),
        incarnation_id=random.uuid(),
        broker_epoch=random.below(1 << 40),
        end_points=[records.BrokerEndpoint(name="PLAINTEXT", host="localhost", port=random.below(65_536))],
        features=[records.BrokerFeature(name="group.version", min_supported_version=0, max_supported_version=1)],
        rack=random.choice([None, "r1", "r2"]),
        fenced=random.chance(0.5),
        in_controlled_shutdown=random.chance(0.2),
        log_dirs=_uuids(random),
        cordoned_log_dirs=_maybe_uuids(random),
    )


def _broker_change(random: SimRandom, image: ClusterImage) -> Message | None:
    if not image.brokers:
        return None
    broker = random.choice(image.brokers_sorted())
    if random.chance(0.1):
        return records.UnregisterBrokerRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch)
    if random.chance(0.1):
        return records.FenceBrokerRecord(id=broker.broker_id, epoch=broker.epoch)
    if random.chance(0.1):
        return records.UnfenceBrokerRecord(id=broker.broker_id, epoch=broker.epoch)
    return records.BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id,
        broker_epoch=broker.epoch,
        fenced=random.below(3) - 1,
        in_controlled_shutdown=random.below(2),
        log_dirs=_uuids(random),
        cordoned_log_dirs=_maybe_uuids(random),
    )


def _controller(random: SimRandom, image: ClusterImage) -> Message:
    return records.RegisterControllerRecord(
        controller_id=random.below(3),
        incarnation_id=random.uuid(),
        end_points=[records.ControllerEndpoint(name="CONTROLLER", host="localhost", port=9093)],
        features=[records.ControllerFeature(name="kraft.version", min_supported_version=0, max_supported_version=1)],
    )


def _topic(random: SimRandom, image: ClusterImage) -> Message | None:
    free = [name for name in NAMES if name not in image.topics_by_name]
    return records.TopicRecord(name=random.choice(free), topic_id=random.uuid()) if free else None


def _topic_removal(random: SimRandom, image: ClusterImage) -> Message | None:
    if not image.topics_by_id or random.chance(0.7):
        return None
    return records.RemoveTopicRecord(topic_id=random.choice(image.topics_sorted()).topic_id)


def _partition(random: SimRandom, image: ClusterImage) -> Message | None:
    if not image.topics_by_id:
        return None
    replicas = _replicas(random)
    return records.PartitionRecord(
        partition_id=random.below(4),
        topic_id=random.choice(image.topics_sorted()).topic_id,
        replicas=replicas,
        isr=replicas[:1],
        leader=replicas[0],
        leader_epoch=random.below(9),
        partition_epoch=random.below(9),
        leader_recovery_state=random.below(2),
        directories=[random.uuid() for _ in replicas],
        eligible_leader_replicas=replicas[1:] or None,
        last_known_elr=random.choice([None, replicas[:1]]),
    )


def _partition_change(random: SimRandom, image: ClusterImage) -> Message | None:
    existing = [(topic.topic_id, index) for topic in image.topics_sorted() for index in sorted(topic.partitions)]
    if not existing:
        return None
    if random.chance(0.05):
        return records.ClearElrRecord(topic_name="")
    topic_id, index = random.choice(existing)
    return records.PartitionChangeRecord(
        topic_id=topic_id,
        partition_id=index,
        isr=_maybe_replicas(random),
        leader=random.below(6) - 2,
        replicas=_maybe_replicas(random),
        leader_recovery_state=random.below(3) - 1,
        eligible_leader_replicas=_maybe_replicas(random),
        last_known_elr=_maybe_replicas(random),
        removing_replicas=_maybe_replicas(random),
        adding_replicas=_maybe_replicas(random),
    )


def _config(random: SimRandom, image: ClusterImage) -> Message:
    return records.ConfigRecord(
        resource_type=random.choice([2, 4]),
        resource_name=random.choice([*NAMES, ""]),
        name=random.choice(["retention.ms", "cleanup.policy"]),
        value=random.choice([None, "1", "compact"]),
    )


def _producer_ids(random: SimRandom, image: ClusterImage) -> Message:
    return records.ProducerIdsRecord(broker_id=1, broker_epoch=5, next_producer_id=random.below(1 << 40))


def _quota(random: SimRandom, image: ClusterImage) -> Message:
    entity = [records.EntityData(entity_type="user", entity_name=random.choice([None, "alice"]))]
    if random.chance(0.5):
        entity.append(records.EntityData(entity_type="client-id", entity_name=random.choice([None, "app"])))
    return records.ClientQuotaRecord(
        entity=entity,
        key=random.choice(["producer_byte_rate", "consumer_byte_rate"]),
        value=random.between(0, 100),
        remove=random.chance(0.3),
    )


def _security(random: SimRandom, image: ClusterImage) -> Message:
    name, acl_id, mechanism = random.choice(NAMES), random.choice([b"1" * 16, b"2" * 16]), 1 + random.below(2)
    return random.choice(
        [
            records.AccessControlEntryRecord(id=acl_id, principal=name),
            records.RemoveAccessControlEntryRecord(id=acl_id),
            records.UserScramCredentialRecord(name=name, mechanism=mechanism, salt=random.random_bytes(4)),
            records.RemoveUserScramCredentialRecord(name=name, mechanism=mechanism),
            records.DelegationTokenRecord(token_id=name, owner=name),
            records.RemoveDelegationTokenRecord(token_id=name),
            records.NoOpRecord(),
        ]
    )


MAKERS: list[Callable[[SimRandom, ClusterImage], Message | None]] = [
    _feature,
    _broker,
    _broker_change,
    _controller,
    _topic,
    _topic_removal,
    _partition,
    _partition,
    _partition_change,
    _partition_change,
    _config,
    _config,
    _producer_ids,
    _quota,
    _security,
]

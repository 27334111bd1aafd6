"""Small clusters for the tests of the managers, without a log or a disk."""

from collections.abc import Callable
from typing import TypeVar

from quire.config.broker_config import BrokerConfig
from quire.controller.controller_result import ControllerResult, Portions
from quire.metadata.delta import ImageDelta
from quire.metadata.image import ClusterImage
from quire.metadata.replay import replay
from quire.metadata.snapshot import image_of
from quire.protocol.messages import metadata_records as records
from quire.protocol.schema import Message

R = TypeVar("R")

CONFIG = BrokerConfig.standalone({"num.partitions": "2"})
TOPIC_ID = b"t" * 16


def directory(broker_id: int) -> bytes:
    return bytes([broker_id]) * 16


def broker(broker_id: int, *, fenced: bool = False, rack: str | None = None, epoch: int = 5) -> Message:
    return records.RegisterBrokerRecord(
        broker_id=broker_id,
        broker_epoch=epoch,
        incarnation_id=bytes(15) + bytes([broker_id]),
        fenced=fenced,
        rack=rack,
        log_dirs=[directory(broker_id)],
        features=[
            records.BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30),
            records.BrokerFeature(name="group.version", min_supported_version=0, max_supported_version=1),
            records.BrokerFeature(
                name="eligible.leader.replicas.version", min_supported_version=0, max_supported_version=1
            ),
        ],
    )


def cluster(*more: Message, brokers: int = 1, features: dict[str, int] | None = None) -> ClusterImage:
    """Unfenced brokers 1, 2, ..., and the given records."""
    levels = {"metadata.version": 30} | (features or {})
    history: list[Message] = [
        records.FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()
    ]
    history += [broker(broker_id) for broker_id in range(1, brokers + 1)]
    return image_of([*history, *more])


def topic(name: str = "orders", topic_id: bytes = TOPIC_ID) -> Message:
    return records.TopicRecord(name=name, topic_id=topic_id)


def partition(
    index: int = 0,
    replicas: tuple[int, ...] = (1,),
    isr: tuple[int, ...] | None = None,
    leader: int | None = None,
    *,
    elr: tuple[int, ...] = (),
    last_known_elr: tuple[int, ...] = (),
    topic_id: bytes = TOPIC_ID,
) -> Message:
    return records.PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(replicas),
        isr=list(replicas if isr is None else isr),
        leader=replicas[0] if leader is None else leader,
        leader_epoch=0,
        partition_epoch=0,
        directories=[directory(each) for each in replicas],
        eligible_leader_replicas=list(elr) or None,
        last_known_elr=list(last_known_elr) or None,
    )


def setting(type_: int, resource: str, name: str, value: str) -> Message:
    return records.ConfigRecord(resource_type=type_, resource_name=resource, name=name, value=value)


def after(image: ClusterImage, changes: list[Message]) -> ClusterImage:
    """The image after these records are committed."""
    later = image.copy()
    for record in changes:
        replay(later, record, ImageDelta())
    return later


def carried_out(image: ClusterImage, manage: Callable[[ClusterImage], Portions[R]]) -> ControllerResult[R]:
    """All records and the response, with each portion applied before the next one, as the controller does it."""
    later = image.copy()
    portions = manage(later)
    records: list[Message] = []
    while True:
        try:
            portion = next(portions)
        except StopIteration as end:
            return ControllerResult(end.value, records)
        records += portion
        for record in portion:
            replay(later, record, ImageDelta())

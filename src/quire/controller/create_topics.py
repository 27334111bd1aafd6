"""CreateTopics: each topic of a request is created whole or refused on its own."""

from collections import Counter

from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError
from quire.config.topic_config import validate_topic_configs
from quire.controller.assignments import check_assignment, new_partition
from quire.controller.controller_result import Portions, check_record_count
from quire.controller.described_settings import DescribedSettings
from quire.controller.replica_placement import place_replicas
from quire.controller.topic_names import check_new_topic_name
from quire.metadata.image import TOPIC, ClusterImage
from quire.metadata.topic_names import collision_key
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from quire.protocol.messages.metadata_records import ConfigRecord, TopicRecord
from quire.protocol.schema import Message
from quire.seams import Random

FROM_CONFIG = -1


def create_topics(
    image: ClusterImage, config: BrokerConfig, random: Random, request: CreateTopicsRequest
) -> Portions[CreateTopicsResponse]:
    response = CreateTopicsResponse()
    try:
        check_record_count(_size(config, request))
    except ApiError as error:
        response.topics = [refused(topic, error) for topic in request.topics]
        return response
    new_names: dict[str, str] = {}
    settings = DescribedSettings(config)
    for topic in _without_repetitions(request, response):
        try:
            check_new_topic_name(image, topic.name, new_names)
            created, records = _create(image, config, random, topic, settings)
            yield [] if request.validate_only else records
        except ApiError as error:
            response.topics.append(refused(topic, error))
            continue
        new_names[collision_key(topic.name)] = topic.name
        response.topics.append(created)
    return response


def refuse(request: CreateTopicsRequest, error: ApiError) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[refused(topic, error) for topic in request.topics])


def refused(topic: CreatableTopic, error: ApiError) -> CreatableTopicResult:
    """`configs` is empty and not null, because the Java admin client fails on null."""
    return CreatableTopicResult(name=topic.name, error_code=error.code, error_message=error.message, configs=[])


def _size(config: BrokerConfig, request: CreateTopicsRequest) -> int:
    """How many records the request would take at most."""
    default = config.get_int("num.partitions")
    partitions = (
        len(topic.assignments) or (default if topic.num_partitions == FROM_CONFIG else max(topic.num_partitions, 0))
        for topic in request.topics
    )
    return sum(partitions) + sum(1 + len(topic.configs) for topic in request.topics)


def _without_repetitions(request: CreateTopicsRequest, response: CreateTopicsResponse) -> list[CreatableTopic]:
    """The topics named once; those named twice are refused, once."""
    times = Counter(topic.name for topic in request.topics)
    error = ApiError(ErrorCode.INVALID_REQUEST, "the request names this topic more than once")
    response.topics.extend(refused(CreatableTopic(name=name), error) for name in times if times[name] > 1)
    return [topic for topic in request.topics if times[topic.name] == 1]


def _create(
    image: ClusterImage, config: BrokerConfig, random: Random, topic: CreatableTopic, settings: DescribedSettings
) -> tuple[CreatableTopicResult, list[Message]]:
    overrides = _overrides(config, topic)
    if topic.assignments:
        replicas = _by_hand(image, topic)
    else:
        count, replication_factor = _dimensions(config, topic)
        replicas = place_replicas(image.brokers.values(), count, replication_factor, random)
    topic_id = _new_topic_id(image, random)
    records: list[Message] = [TopicRecord(name=topic.name, topic_id=topic_id)]
    records += [
        ConfigRecord(resource_type=TOPIC, resource_name=topic.name, name=name, value=value)
        for name, value in overrides.items()
    ]
    records += [new_partition(image, topic_id, index, each) for index, each in enumerate(replicas)]
    answer = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(replicas),
        replication_factor=len(replicas[0]),
        configs=settings.of(overrides),
    )
    return answer, records


def _overrides(config: BrokerConfig, topic: CreatableTopic) -> dict[str, str]:
    overrides = {each.name: each.value for each in topic.configs}
    try:
        validate_topic_configs(overrides, config)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, error.message) from error
    return {name: value for name, value in overrides.items() if value is not None}


def _dimensions(config: BrokerConfig, topic: CreatableTopic) -> tuple[int, int]:
    count, replication_factor = topic.num_partitions, topic.replication_factor
    if count == FROM_CONFIG:
        count = config.get_int("num.partitions")
    if replication_factor == FROM_CONFIG:
        replication_factor = config.get_int("default.replication.factor")
    if replication_factor <= 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"the replication factor is {replication_factor}; it must be above 0, or -1 for the default",
        )
    if count <= 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"the number of partitions is {count}; it must be above 0, or -1 for the default",
        )
    return count, replication_factor


def _by_hand(image: ClusterImage, topic: CreatableTopic) -> list[list[int]]:
    if topic.replication_factor != FROM_CONFIG or topic.num_partitions != FROM_CONFIG:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "where replicas are assigned by hand, the replication factor and the number of partitions must be -1",
        )
    by_index: dict[int, CreatableReplicaAssignment] = {}
    replication_factor: int | None = None
    for assignment in topic.assignments:
        if assignment.partition_index in by_index:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"partition {assignment.partition_index} is assigned twice"
            )
        check_assignment(image, assignment.broker_ids, replication_factor)
        replication_factor = len(assignment.broker_ids)
        by_index[assignment.partition_index] = assignment
    if sorted(by_index) != list(range(len(by_index))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "the assigned partitions must be numbered from 0 on without gaps"
        )
    return [list(by_index[index].broker_ids) for index in range(len(by_index))]


def _new_topic_id(image: ClusterImage, random: Random) -> bytes:
    while True:
        topic_id = random.uuid()
        if topic_id not in image.topics_by_id:
            return topic_id

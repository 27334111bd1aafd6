"""DeleteTopics: by name or by id, each topic on its own."""

from collections import Counter

from quire.config.broker_config import BrokerConfig
from quire.controller.controller_result import Portions
from quire.metadata.image import ClusterImage, TopicImage
from quire.protocol import uuids
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from quire.protocol.messages.metadata_records import RemoveTopicRecord


def delete_topics(
    image: ClusterImage, config: BrokerConfig, request: DeleteTopicsRequest
) -> Portions[DeleteTopicsResponse]:
    response = DeleteTopicsResponse()
    deleted: dict[bytes, None] = {}
    wanted = wanted_topics(request)
    times = Counter((state.name, state.topic_id) for state in wanted)
    for state in {(state.name, state.topic_id): state for state in wanted}.values():
        try:
            if times[state.name, state.topic_id] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "the request names this topic more than once")
            if not config.get_bool("delete.topic.enable"):
                raise ApiError(ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false on this cluster")
            topic = _find(image, state)
            if topic.topic_id in deleted:
                raise ApiError(ErrorCode.INVALID_REQUEST, "the request names this topic by its name and by its id")
            yield [RemoveTopicRecord(topic_id=topic.topic_id)]
        except ApiError as error:
            response.responses.append(refused(state, error))
            continue
        deleted[topic.topic_id] = None
        response.responses.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))
    return response


def wanted_topics(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    """Both ways of naming topics: lists of names up to version 5, names or ids after it."""
    return [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]


def refuse(request: DeleteTopicsRequest, error: ApiError) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=[refused(state, error) for state in wanted_topics(request)])


def refused(state: DeleteTopicState, error: ApiError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=state.name, topic_id=state.topic_id, error_code=error.code, error_message=error.message
    )


def _find(image: ClusterImage, state: DeleteTopicState) -> TopicImage:
    has_id = state.topic_id != uuids.ZERO
    if state.name is not None and has_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "name a topic by its name or its id, not both")
    if state.name is None and not has_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "name the topic, or give its id")
    if state.name is None:
        topic = image.topic_by_id(state.topic_id)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id")
        return topic
    topic = image.topic(state.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{state.name}' does not exist")
    return topic

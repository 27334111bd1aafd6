"""The answer to each request when this node is not the active controller, or cannot write: every part of it says so."""

from quire.controller import create_partitions, create_topics, delete_topics
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages import alter_configs as whole
from quire.protocol.messages import incremental_alter_configs as incremental
from quire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from quire.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse


def not_controller() -> ApiError:
    return ApiError(ErrorCode.NOT_CONTROLLER, "this node is not the active controller")


def no_room() -> ApiError:
    return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk of the metadata log is full: try again when there is room")


def for_create_topics(request: CreateTopicsRequest, error: ApiError) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[create_topics.refused(topic, error) for topic in request.topics])


def for_delete_topics(request: DeleteTopicsRequest, error: ApiError) -> DeleteTopicsResponse:
    wanted = delete_topics.wanted_topics(request)
    return DeleteTopicsResponse(responses=[delete_topics.refused(state, error) for state in wanted])


def for_create_partitions(request: CreatePartitionsRequest, error: ApiError) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(results=[create_partitions.refused(topic, error) for topic in request.topics])


def for_alter_configs(request: whole.AlterConfigsRequest, error: ApiError) -> whole.AlterConfigsResponse:
    return whole.AlterConfigsResponse(
        responses=[
            whole.AlterConfigsResourceResponse(
                error_code=error.code,
                error_message=error.message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in request.resources
        ]
    )


def for_incremental_alter_configs(
    request: incremental.IncrementalAlterConfigsRequest, error: ApiError
) -> incremental.IncrementalAlterConfigsResponse:
    return incremental.IncrementalAlterConfigsResponse(
        responses=[
            incremental.AlterConfigsResourceResponse(
                error_code=error.code,
                error_message=error.message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in request.resources
        ]
    )

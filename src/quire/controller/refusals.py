"""The answer to each request when this node is not the active controller: every part of it says NOT_CONTROLLER."""

from quire.controller import create_partitions, create_topics, delete_topics
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages import alter_configs as whole
from quire.protocol.messages import incremental_alter_configs as incremental
from quire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from quire.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

NOT_CONTROLLER = ApiError(ErrorCode.NOT_CONTROLLER, "this node is not the active controller")


def for_create_topics(request: CreateTopicsRequest) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[create_topics.refused(topic, NOT_CONTROLLER) for topic in request.topics])


def for_delete_topics(request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    wanted = delete_topics.wanted_topics(request)
    return DeleteTopicsResponse(responses=[delete_topics.refused(state, NOT_CONTROLLER) for state in wanted])


def for_create_partitions(request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[create_partitions.refused(topic, NOT_CONTROLLER) for topic in request.topics]
    )


def for_alter_configs(request: whole.AlterConfigsRequest) -> whole.AlterConfigsResponse:
    return whole.AlterConfigsResponse(
        responses=[
            whole.AlterConfigsResourceResponse(
                error_code=NOT_CONTROLLER.code,
                error_message=NOT_CONTROLLER.message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in request.resources
        ]
    )


def for_incremental_alter_configs(
    request: incremental.IncrementalAlterConfigsRequest,
) -> incremental.IncrementalAlterConfigsResponse:
    return incremental.IncrementalAlterConfigsResponse(
        responses=[
            incremental.AlterConfigsResourceResponse(
                error_code=NOT_CONTROLLER.code,
                error_message=NOT_CONTROLLER.message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in request.resources
        ]
    )

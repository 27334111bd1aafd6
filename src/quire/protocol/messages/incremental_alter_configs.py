"""IncrementalAlterConfigs, API 44: versions 0 to 1, flexible from 1. Answered by brokers and controllers."""

from quire.protocol.schema import Message, Struct, array, boolean, int8, int16, int32, string


class AlterableConfig(Struct):
    name: str = string("0+")
    config_operation: int = int8("0+")
    value: str | None = string("0+", nullable="0+")


class AlterConfigsResource(Struct):
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    configs: list[AlterableConfig] = array(AlterableConfig, "0+")


class IncrementalAlterConfigsRequest(Message):
    API_KEY = 44
    VERSIONS = (0, 1)
    FLEXIBLE = 1

    resources: list[AlterConfigsResource] = array(AlterConfigsResource, "0+")
    validate_only: bool = boolean("0+")


class AlterConfigsResourceResponse(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")


class IncrementalAlterConfigsResponse(Message):
    API_KEY = 44
    VERSIONS = (0, 1)
    FLEXIBLE = 1

    throttle_time_ms: int = int32("0+")
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse, "0+")

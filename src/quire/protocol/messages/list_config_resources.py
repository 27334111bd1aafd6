"""ListConfigResources, API 74: versions 0 to 1, flexible. Answered by brokers."""

from quire.protocol.schema import Message, Struct, array, int8, int16, int32, string


class ListConfigResourcesRequest(Message):
    API_KEY = 74
    VERSIONS = (0, 1)
    FLEXIBLE = 0

    resource_types: list[int] = array(int8, "1+")


class ConfigResource(Struct):
    resource_name: str = string("0+")
    resource_type: int = int8("1+", default=16, ignorable=True)


class ListConfigResourcesResponse(Message):
    API_KEY = 74
    VERSIONS = (0, 1)
    FLEXIBLE = 0

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    config_resources: list[ConfigResource] = array(ConfigResource, "0+")

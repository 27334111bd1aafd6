"""DescribeAcls, API 29: versions 1 to 3, flexible from 2. Answered by brokers and controllers."""

from quire.protocol.schema import Message, Struct, array, int8, int16, int32, string


class DescribeAclsRequest(Message):
    API_KEY = 29
    VERSIONS = (1, 3)
    FLEXIBLE = 2

    resource_type_filter: int = int8("0+")
    resource_name_filter: str | None = string("0+", nullable="0+")
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string("0+", nullable="0+")
    host_filter: str | None = string("0+", nullable="0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


class AclDescription(Struct):
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


class DescribeAclsResource(Struct):
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    pattern_type: int = int8("1+", default=3)
    acls: list[AclDescription] = array(AclDescription, "0+")


class DescribeAclsResponse(Message):
    API_KEY = 29
    VERSIONS = (1, 3)
    FLEXIBLE = 2

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resources: list[DescribeAclsResource] = array(DescribeAclsResource, "0+")

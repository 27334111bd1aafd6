"""ControllerRegistration, API 70: version 0, flexible. Answered by controllers."""

from quire.protocol.schema import Message, Struct, array, boolean, int16, int32, string, uint16, uuid


class Listener(Struct):
    name: str = string("0+")
    host: str = string("0+")
    port: int = uint16("0+")
    security_protocol: int = int16("0+")


class Feature(Struct):
    name: str = string("0+")
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


class ControllerRegistrationRequest(Message):
    API_KEY = 70
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    controller_id: int = int32("0+")
    incarnation_id: bytes = uuid("0+")
    zk_migration_ready: bool = boolean("0+")
    listeners: list[Listener] = array(Listener, "0+")
    features: list[Feature] = array(Feature, "0+")


class ControllerRegistrationResponse(Message):
    API_KEY = 70
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")

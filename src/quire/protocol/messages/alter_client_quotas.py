"""AlterClientQuotas, API 49: versions 0 to 1, flexible from 1. Answered by brokers and controllers."""

from quire.protocol.schema import Message, Struct, array, boolean, float64, int16, int32, string


class AlterClientQuotasRequestEntityData(Struct):
    entity_type: str = string("0+")
    entity_name: str | None = string("0+", nullable="0+")


class OpData(Struct):
    key: str = string("0+")
    value: float = float64("0+")
    remove: bool = boolean("0+")


class AlterClientQuotasRequestEntryData(Struct):
    entity: list[AlterClientQuotasRequestEntityData] = array(AlterClientQuotasRequestEntityData, "0+")
    ops: list[OpData] = array(OpData, "0+")


class AlterClientQuotasRequest(Message):
    API_KEY = 49
    VERSIONS = (0, 1)
    FLEXIBLE = 1

    entries: list[AlterClientQuotasRequestEntryData] = array(AlterClientQuotasRequestEntryData, "0+")
    validate_only: bool = boolean("0+")


class AlterClientQuotasResponseEntityData(Struct):
    entity_type: str = string("0+")
    entity_name: str | None = string("0+", nullable="0+")


class AlterClientQuotasResponseEntryData(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    entity: list[AlterClientQuotasResponseEntityData] = array(AlterClientQuotasResponseEntityData, "0+")


class AlterClientQuotasResponse(Message):
    API_KEY = 49
    VERSIONS = (0, 1)
    FLEXIBLE = 1

    throttle_time_ms: int = int32("0+")
    entries: list[AlterClientQuotasResponseEntryData] = array(AlterClientQuotasResponseEntryData, "0+")

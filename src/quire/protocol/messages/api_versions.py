"""ApiVersions, API 18: versions 0 to 4, flexible from 3. Answered by brokers and controllers."""

from quire.protocol.schema import Message, Struct, array, boolean, int16, int32, int64, string


class ApiVersionsRequest(Message):
    API_KEY = 18
    VERSIONS = (0, 4)
    FLEXIBLE = 3

    client_software_name: str = string("3+", ignorable=True)
    client_software_version: str = string("3+", ignorable=True)


class ApiVersion(Struct):
    api_key: int = int16("0+")
    min_version: int = int16("0+")
    max_version: int = int16("0+")


class SupportedFeatureKey(Struct):
    name: str = string("3+")
    min_version: int = int16("3+")
    max_version: int = int16("3+")


class FinalizedFeatureKey(Struct):
    name: str = string("3+")
    max_version_level: int = int16("3+")
    min_version_level: int = int16("3+")


class ApiVersionsResponse(Message):
    API_KEY = 18
    VERSIONS = (0, 4)
    FLEXIBLE = 3

    error_code: int = int16("0+")
    api_keys: list[ApiVersion] = array(ApiVersion, "0+")
    throttle_time_ms: int = int32("1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, "3+", tag=0, tagged="3+", ignorable=True)
    finalized_features_epoch: int = int64("3+", tag=1, tagged="3+", default=-1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, "3+", tag=2, tagged="3+", ignorable=True)
    zk_migration_ready: bool = boolean("3+", tag=3, tagged="3+", ignorable=True)

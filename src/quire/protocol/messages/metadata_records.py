"""The records of the metadata log, `__cluster_metadata`.

A value there is three unsigned varints (frame version 1, the API_KEY, the version) and then the record.
"""

from quire.protocol.schema import (
    Message,
    Struct,
    array,
    binary,
    boolean,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class BrokerEndpoint(Struct):
    name: str = string("0+")
    host: str = string("0+")
    port: int = uint16("0+")
    security_protocol: int = int16("0+")


class BrokerFeature(Struct):
    name: str = string("0+")
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


class RegisterBrokerRecord(Message):
    API_KEY = 0
    VERSIONS = (0, 4)
    FLEXIBLE = 0

    broker_id: int = int32("0+")
    is_migrating_zk_broker: bool = boolean("2+")
    incarnation_id: bytes = uuid("0+")
    broker_epoch: int = int64("0+")
    end_points: list[BrokerEndpoint] = array(BrokerEndpoint, "0+")
    features: list[BrokerFeature] = array(BrokerFeature, "0+")
    rack: str | None = string("0+", nullable="0+")
    fenced: bool = boolean("0+", default=True)
    in_controlled_shutdown: bool = boolean("1+")
    log_dirs: list[bytes] = array(uuid, "3+", tag=0, tagged="3+")
    cordoned_log_dirs: list[bytes] | None = array(uuid, "4+", nullable="4+", tag=1, tagged="4+", default=None)


class UnregisterBrokerRecord(Message):
    API_KEY = 1
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+")


class TopicRecord(Message):
    API_KEY = 2
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    name: str = string("0+")
    topic_id: bytes = uuid("0+")


class PartitionRecord(Message):
    API_KEY = 3
    VERSIONS = (0, 2)
    FLEXIBLE = 0

    partition_id: int = int32("0+", default=-1)
    topic_id: bytes = uuid("0+")
    replicas: list[int] = array(int32, "0+")
    isr: list[int] = array(int32, "0+")
    removing_replicas: list[int] = array(int32, "0+")
    adding_replicas: list[int] = array(int32, "0+")
    leader: int = int32("0+", default=-1)
    leader_recovery_state: int = int8("0+", tag=0, tagged="0+")
    leader_epoch: int = int32("0+", default=-1)
    partition_epoch: int = int32("0+", default=-1)
    directories: list[bytes] = array(uuid, "1+")
    eligible_leader_replicas: list[int] | None = array(int32, "2+", nullable="2+", tag=1, tagged="2+", default=None)
    last_known_elr: list[int] | None = array(int32, "2+", nullable="2+", tag=2, tagged="2+", default=None)


class ConfigRecord(Message):
    API_KEY = 4
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    name: str = string("0+")
    value: str | None = string("0+", nullable="0+")


class PartitionChangeRecord(Message):
    API_KEY = 5
    VERSIONS = (0, 2)
    FLEXIBLE = 0

    partition_id: int = int32("0+", default=-1)
    topic_id: bytes = uuid("0+")
    isr: list[int] | None = array(int32, "0+", nullable="0+", tag=0, tagged="0+", default=None)
    leader: int = int32("0+", tag=1, tagged="0+", default=-2)
    replicas: list[int] | None = array(int32, "0+", nullable="0+", tag=2, tagged="0+", default=None)
    removing_replicas: list[int] | None = array(int32, "0+", nullable="0+", tag=3, tagged="0+", default=None)
    adding_replicas: list[int] | None = array(int32, "0+", nullable="0+", tag=4, tagged="0+", default=None)
    leader_recovery_state: int = int8("0+", tag=5, tagged="0+", default=-1)
    directories: list[bytes] | None = array(uuid, "1+", nullable="1+", tag=8, tagged="1+", default=None)
    eligible_leader_replicas: list[int] | None = array(int32, "2+", nullable="2+", tag=6, tagged="2+", default=None)
    last_known_elr: list[int] | None = array(int32, "2+", nullable="2+", tag=7, tagged="2+", default=None)


class FenceBrokerRecord(Message):
    API_KEY = 7
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    id: int = int32("0+")
    epoch: int = int64("0+")


class UnfenceBrokerRecord(Message):
    API_KEY = 8
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    id: int = int32("0+")
    epoch: int = int64("0+")


class RemoveTopicRecord(Message):
    API_KEY = 9
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    topic_id: bytes = uuid("0+")


class DelegationTokenRecord(Message):
    API_KEY = 10
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    owner: str = string("0+")
    requester: str = string("0+")
    renewers: list[str] = array(string, "0+")
    issue_timestamp: int = int64("0+")
    max_timestamp: int = int64("0+")
    expiration_timestamp: int = int64("0+")
    token_id: str = string("0+")


class UserScramCredentialRecord(Message):
    API_KEY = 11
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    name: str = string("0+")
    mechanism: int = int8("0+")
    salt: bytes = binary("0+")
    stored_key: bytes = binary("0+")
    server_key: bytes = binary("0+")
    iterations: int = int32("0+")


class FeatureLevelRecord(Message):
    API_KEY = 12
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    name: str = string("0+")
    feature_level: int = int16("0+")


class EntityData(Struct):
    entity_type: str = string("0+")
    entity_name: str | None = string("0+", nullable="0+")


class ClientQuotaRecord(Message):
    API_KEY = 14
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    entity: list[EntityData] = array(EntityData, "0+")
    key: str = string("0+")
    value: float = float64("0+")
    remove: bool = boolean("0+")


class ProducerIdsRecord(Message):
    API_KEY = 15
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+", default=-1)
    next_producer_id: int = int64("0+")


class BrokerRegistrationChangeRecord(Message):
    API_KEY = 17
    VERSIONS = (0, 3)
    FLEXIBLE = 0

    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+")
    fenced: int = int8("0+", tag=0, tagged="0+")
    in_controlled_shutdown: int = int8("1+", tag=1, tagged="1+")
    log_dirs: list[bytes] = array(uuid, "2+", tag=2, tagged="2+")
    cordoned_log_dirs: list[bytes] | None = array(uuid, "3+", nullable="3+", tag=3, tagged="3+", default=None)


class AccessControlEntryRecord(Message):
    API_KEY = 18
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    id: bytes = uuid("0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    pattern_type: int = int8("0+")
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


class RemoveAccessControlEntryRecord(Message):
    API_KEY = 19
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    id: bytes = uuid("0+")


class NoOpRecord(Message):
    API_KEY = 20
    VERSIONS = (0, 0)
    FLEXIBLE = 0


class ZkMigrationStateRecord(Message):
    API_KEY = 21
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    zk_migration_state: int = int8("0+")


class RemoveUserScramCredentialRecord(Message):
    API_KEY = 22
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    name: str = string("0+")
    mechanism: int = int8("0+")


class BeginTransactionRecord(Message):
    API_KEY = 23
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    name: str | None = string("0+", nullable="0+", tag=0, tagged="0+", default=None)


class EndTransactionRecord(Message):
    API_KEY = 24
    VERSIONS = (0, 0)
    FLEXIBLE = 0


class AbortTransactionRecord(Message):
    API_KEY = 25
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    reason: str | None = string("0+", nullable="0+", tag=0, tagged="0+", default=None)


class RemoveDelegationTokenRecord(Message):
    API_KEY = 26
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    token_id: str = string("0+")


class ControllerEndpoint(Struct):
    name: str = string("0+")
    host: str = string("0+")
    port: int = uint16("0+")
    security_protocol: int = int16("0+")


class ControllerFeature(Struct):
    name: str = string("0+")
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


class RegisterControllerRecord(Message):
    API_KEY = 27
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    controller_id: int = int32("0+")
    incarnation_id: bytes = uuid("0+")
    zk_migration_ready: bool = boolean("0+")
    end_points: list[ControllerEndpoint] = array(ControllerEndpoint, "0+")
    features: list[ControllerFeature] = array(ControllerFeature, "0+")


class ClearElrRecord(Message):
    API_KEY = 28
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    topic_name: str = string("0+")


RECORD_TYPES: dict[int, type[Message]] = {
    0: RegisterBrokerRecord,
    1: UnregisterBrokerRecord,
    2: TopicRecord,
    3: PartitionRecord,
    4: ConfigRecord,
    5: PartitionChangeRecord,
    7: FenceBrokerRecord,
    8: UnfenceBrokerRecord,
    9: RemoveTopicRecord,
    10: DelegationTokenRecord,
    11: UserScramCredentialRecord,
    12: FeatureLevelRecord,
    14: ClientQuotaRecord,
    15: ProducerIdsRecord,
    17: BrokerRegistrationChangeRecord,
    18: AccessControlEntryRecord,
    19: RemoveAccessControlEntryRecord,
    20: NoOpRecord,
    21: ZkMigrationStateRecord,
    22: RemoveUserScramCredentialRecord,
    23: BeginTransactionRecord,
    24: EndTransactionRecord,
    25: AbortTransactionRecord,
    26: RemoveDelegationTokenRecord,
    27: RegisterControllerRecord,
    28: ClearElrRecord,
}

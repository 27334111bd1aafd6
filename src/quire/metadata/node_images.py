"""Brokers and controllers as they registered. Values: a change makes a new one."""

from typing import NamedTuple

from quire.protocol.messages.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ControllerEndpoint,
    ControllerFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)


class Endpoint(NamedTuple):
    """The address of a listener. `security_protocol` is Kafka's number; 0 is plaintext."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


class BrokerImage(NamedTuple):
    """A registered broker. Its epoch is the offset of its registration; fenced, it leads nothing."""

    broker_id: int
    epoch: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...] = ()
    features: tuple[tuple[str, int, int], ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None
    is_migrating_zk_broker: bool = False

    @property
    def is_active(self) -> bool:
        """Whether it can lead partitions and take new replicas."""
        return not self.fenced and not self.in_controlled_shutdown

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((each for each in self.endpoints if each.name == listener), None)

    def directory_for_new_replicas(self) -> bytes | None:
        """The directory of new replicas, if the broker has only one."""
        usable = [each for each in self.log_dirs if each not in (self.cordoned_log_dirs or ())]
        return usable[0] if len(usable) == 1 else None

    @classmethod
    def from_record(cls, record: RegisterBrokerRecord) -> "BrokerImage":
        cordoned = record.cordoned_log_dirs
        return cls(
            broker_id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=tuple(
                Endpoint(each.name, each.host, each.port, each.security_protocol) for each in record.end_points
            ),
            features=tuple(
                (each.name, each.min_supported_version, each.max_supported_version) for each in record.features
            ),
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            log_dirs=tuple(record.log_dirs),
            cordoned_log_dirs=None if cordoned is None else tuple(cordoned),
            is_migrating_zk_broker=record.is_migrating_zk_broker,
        )

    def to_record(self, version: int) -> RegisterBrokerRecord:
        cordoned = None if self.cordoned_log_dirs is None or version < 4 else list(self.cordoned_log_dirs)
        return RegisterBrokerRecord(
            broker_id=self.broker_id,
            is_migrating_zk_broker=self.is_migrating_zk_broker and version >= 2,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=[
                BrokerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
                for each in self.endpoints
            ],
            features=[
                BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, low, high in self.features
            ],
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=list(self.log_dirs) if version >= 3 else [],
            cordoned_log_dirs=cordoned,
        )

    def with_fencing(self, fenced: bool) -> "BrokerImage":
        return self._replace(fenced=fenced)

    def changed_by(self, record: BrokerRegistrationChangeRecord) -> "BrokerImage":
        """In `fenced` and `in_controlled_shutdown` 1 sets, -1 clears and 0 leaves as it is."""
        cordoned = record.cordoned_log_dirs
        return self._replace(
            fenced=self.fenced if record.fenced == 0 else record.fenced > 0,
            in_controlled_shutdown=self.in_controlled_shutdown or record.in_controlled_shutdown > 0,
            log_dirs=tuple(record.log_dirs) or self.log_dirs,
            cordoned_log_dirs=self.cordoned_log_dirs if cordoned is None else tuple(cordoned),
        )


class ControllerImage(NamedTuple):
    controller_id: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...] = ()
    features: tuple[tuple[str, int, int], ...] = ()
    zk_migration_ready: bool = False

    @classmethod
    def from_record(cls, record: RegisterControllerRecord) -> "ControllerImage":
        return cls(
            controller_id=record.controller_id,
            incarnation_id=record.incarnation_id,
            endpoints=tuple(
                Endpoint(each.name, each.host, each.port, each.security_protocol) for each in record.end_points
            ),
            features=tuple(
                (each.name, each.min_supported_version, each.max_supported_version) for each in record.features
            ),
            zk_migration_ready=record.zk_migration_ready,
        )

    def to_record(self) -> RegisterControllerRecord:
        return RegisterControllerRecord(
            controller_id=self.controller_id,
            incarnation_id=self.incarnation_id,
            zk_migration_ready=self.zk_migration_ready,
            end_points=[
                ControllerEndpoint(
                    name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
                )
                for each in self.endpoints
            ],
            features=[
                ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, low, high in self.features
            ],
        )

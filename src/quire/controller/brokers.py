"""Brokers: they register, are fenced and unfenced, and leave.

A broker registers fenced, and its epoch is the offset of its registration. It no longer leads what an earlier
incarnation led. It is unfenced once a heartbeat says that it has read the log up to its registration. When it wants to
stop, its leaderships move to other brokers first, then the response to a heartbeat tells it to shut down.
"""

from quire.config.broker_config import BrokerConfig
from quire.controller import elections
from quire.controller.controller_result import ControllerResult
from quire.controller.heartbeats import Heartbeats
from quire.metadata.features import (
    has_controller_registrations,
    has_cordoned_directories,
    has_directories,
    has_eligible_leader_replicas,
)
from quire.metadata.image import BrokerImage, ClusterImage
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quire.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from quire.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from quire.protocol.messages.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ControllerEndpoint,
    ControllerFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
)
from quire.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from quire.protocol.schema import Message

FENCE = 1
UNFENCE = -1
SHUT_DOWN = 1


def register_broker(
    image: ClusterImage,
    config: BrokerConfig,
    cluster_id: str,
    request: BrokerRegistrationRequest,
    *,
    next_offset: int,
    may_replace: bool,
) -> ControllerResult[BrokerRegistrationResponse]:
    """`may_replace` is false while an earlier incarnation may still run."""
    existing = image.brokers.get(request.broker_id)
    is_retry = existing is not None and existing.incarnation_id == request.incarnation_id
    try:
        _check_registration(image, cluster_id, request)
        if existing is not None and not is_retry and not may_replace:
            raise ApiError(
                ErrorCode.DUPLICATE_BROKER_REGISTRATION, f"another broker {request.broker_id} is alive in this cluster"
            )
    except ApiError as error:
        return ControllerResult(BrokerRegistrationResponse(error_code=error.code))
    epoch = existing.epoch if existing is not None and is_retry else next_offset
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=[
            BrokerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in request.listeners
        ],
        features=[
            BrokerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ],
        rack=request.rack,
        fenced=existing.fenced if existing is not None and is_retry else True,
        in_controlled_shutdown=existing.in_controlled_shutdown if existing is not None and is_retry else False,
        log_dirs=list(request.log_dirs) if has_directories(image.metadata_version) else [],
    )
    records: list[Message] = [record]
    if not is_retry:
        clean = existing is None or existing.epoch == request.previous_broker_epoch
        unclean_shutdown = has_eligible_leader_replicas(image.features) and not clean
        records += elections.broker_left(image, config, request.broker_id, unclean_shutdown=unclean_shutdown)
    return ControllerResult(BrokerRegistrationResponse(broker_epoch=epoch), records)


def _check_registration(image: ClusterImage, cluster_id: str, request: BrokerRegistrationRequest) -> None:
    if request.cluster_id != cluster_id:
        raise ApiError(ErrorCode.INCONSISTENT_CLUSTER_ID, f"this is cluster {cluster_id}, not {request.cluster_id}")
    ranges = {each.name: (each.min_supported_version, each.max_supported_version) for each in request.features}
    for name, level in image.features.items():
        low, high = ranges.get(name, (0, 0))
        if not low <= level <= high:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{name} is at level {level}, and broker {request.broker_id} knows {low} to {high}",
            )
    if has_directories(image.metadata_version) and not request.log_dirs:
        raise ApiError(ErrorCode.INVALID_REGISTRATION, f"broker {request.broker_id} has no log directories")


def register_controller(
    image: ClusterImage, request: ControllerRegistrationRequest
) -> ControllerResult[ControllerRegistrationResponse]:
    if not has_controller_registrations(image.metadata_version):
        return ControllerResult(
            ControllerRegistrationResponse(
                error_code=ErrorCode.UNSUPPORTED_VERSION, error_message="the metadata.version is too low for this"
            )
        )
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=request.zk_migration_ready,
        end_points=[
            ControllerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in request.listeners
        ],
        features=[
            ControllerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ],
    )
    return ControllerResult(ControllerRegistrationResponse(error_message=None), [record])


def unregister_broker(
    image: ClusterImage, config: BrokerConfig, request: UnregisterBrokerRequest
) -> ControllerResult[UnregisterBrokerResponse]:
    """For a broker that will not come back."""
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        return ControllerResult(
            UnregisterBrokerResponse(
                error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
                error_message=f"there is no broker {request.broker_id}",
            )
        )
    record = UnregisterBrokerRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch)
    changes = elections.broker_left(image, config, broker.broker_id)
    return ControllerResult(UnregisterBrokerResponse(error_message=None), [*changes, record])


def fence(image: ClusterImage, config: BrokerConfig, broker_id: int) -> list[Message]:
    """The broker sent no heartbeat within its session, its process is gone, or it asks to be fenced."""
    broker = image.brokers[broker_id]
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=FENCE)
    return [change, *elections.broker_left(image, config, broker_id)]


def heartbeat(
    image: ClusterImage,
    config: BrokerConfig,
    heartbeats: Heartbeats,
    request: BrokerHeartbeatRequest,
    *,
    now_ms: float,
    next_offset: int,
) -> ControllerResult[BrokerHeartbeatResponse]:
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        return ControllerResult(BrokerHeartbeatResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED))
    if broker.epoch != request.broker_epoch:
        return ControllerResult(BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    heartbeats.heard(broker.broker_id, broker.epoch, now_ms, request.current_metadata_offset)
    is_caught_up = request.current_metadata_offset >= broker.epoch
    records: list[Message] = []
    fenced, should_shut_down = broker.fenced, False
    if request.want_shut_down:
        records, should_shut_down = _shut_down(image, config, heartbeats, broker, next_offset)
        fenced = fenced or should_shut_down
    elif request.want_fence and not broker.fenced:
        records, fenced = fence(image, config, broker.broker_id), True
    elif broker.fenced and not request.want_fence and is_caught_up:
        change = BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=UNFENCE)
        records, fenced = [change, *elections.broker_joined(image, config, broker.broker_id)], False
    records += _directory_changes(image, config, broker, request)
    response = BrokerHeartbeatResponse(is_caught_up=is_caught_up, is_fenced=fenced, should_shut_down=should_shut_down)
    return ControllerResult(response, records)


def _shut_down(
    image: ClusterImage, config: BrokerConfig, heartbeats: Heartbeats, broker: BrokerImage, next_offset: int
) -> tuple[list[Message], bool]:
    """First its leaderships move away. Once every other active broker has read that, it is fenced and may stop."""
    leads = any(
        partition.leader == broker.broker_id
        for topic in image.topics_by_name.values()
        for partition in topic.partitions.values()
    )
    if broker.fenced:
        return [], True
    active = {each.broker_id for each in image.brokers.values() if each.is_active}
    if not leads and heartbeats.others_know_of_shutdown(broker.broker_id, active):
        return fence(image, config, broker.broker_id), True
    if broker.in_controlled_shutdown:
        return [], False
    heartbeats.start_shutdown(broker.broker_id, next_offset)
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=SHUT_DOWN
    )
    return [change, *elections.broker_left(image, config, broker.broker_id)], False


def _directory_changes(
    image: ClusterImage, config: BrokerConfig, broker: BrokerImage, request: BrokerHeartbeatRequest
) -> list[Message]:
    """Directories that went offline since it registered, and those that take no new replicas."""
    records: list[Message] = []
    offline = tuple(each for each in broker.log_dirs if each in request.offline_log_dirs)
    if offline:
        remaining = [each for each in broker.log_dirs if each not in offline]
        records.append(
            BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, log_dirs=remaining)
        )
        records += elections.directories_failed(image, config, broker.broker_id, offline)
    cordoned = request.cordoned_log_dirs
    has_news = cordoned is not None and tuple(cordoned) != broker.cordoned_log_dirs
    if has_news and has_cordoned_directories(image.metadata_version):
        records.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker.broker_id, broker_epoch=broker.epoch, cordoned_log_dirs=cordoned
            )
        )
    return records

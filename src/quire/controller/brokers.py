"""Brokers: they register, are fenced and unfenced, and leave.

A broker registers fenced, and its epoch is the offset of its registration. It no longer leads what an earlier
incarnation led. It is unfenced once a heartbeat says that it has read the log up to its registration. When it wants to
stop, its leaderships move to other brokers first, then the response to a heartbeat tells it to shut down.
"""

from collections.abc import Callable

from quire.config.broker_config import BrokerConfig
from quire.controller import elections
from quire.controller.controller_result import ControllerResult, Portions
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
    next_offset: Callable[[], int],
    may_replace: Callable[[], bool],
) -> Portions[BrokerRegistrationResponse]:
    """`may_replace` is false while an earlier incarnation may still run.

    The earlier incarnation is fenced in portions first. The last portion is complete by itself: it is right whatever
    happened before it, and has little to do if nothing did. So a crash between the portions leaves a fenced broker,
    which registers again, and the next controller still finds out whether its shutdown was unclean.
    """
    try:
        existing = _replaceable(image, cluster_id, request, may_replace)
        if existing is None or existing.incarnation_id != request.incarnation_id:
            unclean_shutdown = _was_unclean(image, request)
            if existing is not None and not existing.fenced:
                yield [_fenced(existing)]
            yield from elections.settle(image, config, request.broker_id, unclean_shutdown=unclean_shutdown)
            existing = _replaceable(image, cluster_id, request, may_replace)
    except ApiError as error:
        return BrokerRegistrationResponse(error_code=error.code)
    record = _registration(image, request, existing, next_offset())
    records: list[Message] = [record]
    if existing is None or existing.incarnation_id != request.incarnation_id:
        unclean_shutdown = _was_unclean(image, request)
        records += elections.broker_left(image, config, request.broker_id, unclean_shutdown=unclean_shutdown)
    yield records
    return BrokerRegistrationResponse(broker_epoch=record.broker_epoch)


def _replaceable(
    image: ClusterImage, cluster_id: str, request: BrokerRegistrationRequest, may_replace: Callable[[], bool]
) -> BrokerImage | None:
    """The registration that this one repeats or replaces, if there is one; ApiError if it must not be replaced."""
    _check_registration(image, cluster_id, request)
    existing = image.brokers.get(request.broker_id)
    is_retry = existing is not None and existing.incarnation_id == request.incarnation_id
    if existing is not None and not is_retry and not may_replace():
        raise ApiError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION, f"another broker {request.broker_id} is alive in this cluster"
        )
    return existing


def _was_unclean(image: ClusterImage, request: BrokerRegistrationRequest) -> bool:
    """Whether the broker may have lost records that it had when it was last registered (KIP-966).

    Of one that was unregistered the epoch is no longer known. A new one is in no ISR that it could leave.
    """
    existing = image.brokers.get(request.broker_id)
    is_clean = existing is not None and existing.epoch == request.previous_broker_epoch
    return has_eligible_leader_replicas(image.features) and not is_clean


def _registration(
    image: ClusterImage, request: BrokerRegistrationRequest, existing: BrokerImage | None, next_offset: int
) -> RegisterBrokerRecord:
    repeated = existing if existing is not None and existing.incarnation_id == request.incarnation_id else None
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=next_offset if repeated is None else repeated.epoch,
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
        fenced=True if repeated is None else repeated.fenced,
        in_controlled_shutdown=repeated is not None and repeated.in_controlled_shutdown,
        log_dirs=list(request.log_dirs) if has_directories(image.metadata_version) else [],
    )


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
) -> Portions[UnregisterBrokerResponse]:
    """For a broker that will not return. As in `register_broker`, the last portion is complete by itself.

    It stays in the sets of eligible replicas: without it, a partition could elect a replica that lacks acknowledged
    records although the topic does not allow that. If the broker does return, it leaves these sets then.
    """
    broker_id = request.broker_id
    if broker_id in image.brokers:
        yield from fence(image, config, broker_id)
    broker = image.brokers.get(broker_id)
    if broker is None:
        return UnregisterBrokerResponse(
            error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message=f"there is no broker {broker_id}"
        )
    changes = elections.broker_left(image, config, broker_id)
    yield [*changes, UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch)]
    return UnregisterBrokerResponse(error_message=None)


def fence(image: ClusterImage, config: BrokerConfig, broker_id: int) -> Portions[None]:
    """The broker sent no heartbeat within its session, its process is gone, or it asks to be fenced."""
    broker = image.brokers[broker_id]
    if not broker.fenced:
        yield [_fenced(broker)]
    yield from elections.settle(image, config, broker_id)


def _fenced(broker: BrokerImage) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=FENCE)


def check_sender(image: ClusterImage, request: BrokerHeartbeatRequest) -> BrokerImage:
    """The broker that sent the heartbeat; ApiError if it must register first."""
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {request.broker_id}")
    if broker.epoch != request.broker_epoch:
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH, f"broker {request.broker_id} has registered again")
    return broker


def heartbeat(
    image: ClusterImage,
    config: BrokerConfig,
    heartbeats: Heartbeats,
    request: BrokerHeartbeatRequest,
    *,
    now_ms: float,
    next_offset: Callable[[], int],
) -> Portions[BrokerHeartbeatResponse]:
    """ApiError if the broker must register first."""
    broker = check_sender(image, request)
    heartbeats.heard(broker.broker_id, broker.epoch, now_ms, request.current_metadata_offset)
    is_caught_up = request.current_metadata_offset >= broker.epoch
    fenced, should_shut_down = broker.fenced, False
    if request.want_shut_down:
        should_shut_down = yield from _shut_down(image, config, heartbeats, broker, next_offset)
        fenced = fenced or should_shut_down
    elif request.want_fence and not broker.fenced:
        yield from fence(image, config, broker.broker_id)
        fenced = True
    elif broker.fenced and not request.want_fence and is_caught_up:
        yield [BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=UNFENCE)]
        yield from elections.settle(image, config, broker.broker_id)
        fenced = False
    yield from _directory_changes(image, config, request)
    return BrokerHeartbeatResponse(is_caught_up=is_caught_up, is_fenced=fenced, should_shut_down=should_shut_down)


def _shut_down(
    image: ClusterImage,
    config: BrokerConfig,
    heartbeats: Heartbeats,
    broker: BrokerImage,
    next_offset: Callable[[], int],
) -> Portions[bool]:
    """First its leaderships move away. Once every other active broker has read that, it is fenced and may stop."""
    if broker.fenced:
        return True
    active = {each.broker_id for each in image.brokers.values() if each.is_active}
    # In this order: looking at all its partitions with each heartbeat would hold up the event loop.
    others_know = heartbeats.others_know_of_shutdown(broker.broker_id, active)
    if others_know and not elections.leads_any(image, broker.broker_id):
        yield from fence(image, config, broker.broker_id)
        return True
    if broker.in_controlled_shutdown:
        return False
    heartbeats.start_shutdown(broker.broker_id, broker.epoch, next_offset())
    yield [
        BrokerRegistrationChangeRecord(
            broker_id=broker.broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=SHUT_DOWN
        )
    ]
    for changes in elections.settle(image, config, broker.broker_id):
        if changes:
            heartbeats.start_shutdown(broker.broker_id, broker.epoch, next_offset())
        yield changes
    return False


def _directory_changes(image: ClusterImage, config: BrokerConfig, request: BrokerHeartbeatRequest) -> Portions[None]:
    """Directories that went offline since it registered, and those that take no new replicas."""
    broker = check_sender(image, request)
    offline = tuple(each for each in broker.log_dirs if each in request.offline_log_dirs)
    if offline:
        remaining = [each for each in broker.log_dirs if each not in offline]
        yield [
            BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, log_dirs=remaining)
        ]
        yield from elections.settle(image, config, broker.broker_id, offline=offline)
        broker = check_sender(image, request)
    cordoned = request.cordoned_log_dirs
    has_news = cordoned is not None and tuple(cordoned) != broker.cordoned_log_dirs
    if has_news and has_cordoned_directories(image.metadata_version):
        yield [
            BrokerRegistrationChangeRecord(
                broker_id=broker.broker_id, broker_epoch=broker.epoch, cordoned_log_dirs=cordoned
            )
        ]

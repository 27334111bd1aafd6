"""AlterConfigs and IncrementalAlterConfigs: dynamic settings of topics, brokers and groups, each resource on its own.

The old request replaces all settings of a resource, the new one (KIP-339) changes single ones. Either way the settings
as they would be afterwards are validated by `quire.config`, and only differences become records.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

from quire.config.broker_config import BrokerConfig
from quire.config.broker_keys import BROKER_KEYS
from quire.config.errors import ConfigError
from quire.config.group_config import GROUP_KEYS, validate_group_configs
from quire.config.incremental import changed_value
from quire.config.topic_config import validate_topic_configs
from quire.config.topic_keys import TOPIC_KEYS
from quire.controller import elections
from quire.controller.controller_result import Portions
from quire.controller.topic_names import check_topic_name
from quire.metadata.features import has_eligible_leader_replicas
from quire.metadata.image import BROKER, GROUP, TOPIC, ClusterImage, ConfigResource, TopicImage
from quire.protocol.alter_config_op import AlterConfigOp
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages import alter_configs as whole
from quire.protocol.messages import incremental_alter_configs as incremental
from quire.protocol.messages.metadata_records import ConfigRecord
from quire.protocol.schema import Message

T = TypeVar("T")

MOST_GROUPS = 10_000

_KEYS = {TOPIC: TOPIC_KEYS, BROKER: BROKER_KEYS, GROUP: GROUP_KEYS}

Changes = dict[str, str | None]
"""The new values of a resource's settings; None removes one."""


def alter_configs(
    image: ClusterImage, config: BrokerConfig, request: whole.AlterConfigsRequest
) -> Portions[whole.AlterConfigsResponse]:
    response = whole.AlterConfigsResponse()
    yield from _alter_each(
        image, config, request, response.responses, whole.AlterConfigsResourceResponse, _replacing_changes
    )
    return response


def incremental_alter_configs(
    image: ClusterImage, config: BrokerConfig, request: incremental.IncrementalAlterConfigsRequest
) -> Portions[incremental.IncrementalAlterConfigsResponse]:
    response = incremental.IncrementalAlterConfigsResponse()
    yield from _alter_each(
        image, config, request, response.responses, incremental.AlterConfigsResourceResponse, _single_changes
    )
    return response


def refuse(request: whole.AlterConfigsRequest, error: ApiError) -> whole.AlterConfigsResponse:
    make_response = whole.AlterConfigsResourceResponse
    return whole.AlterConfigsResponse(responses=_refused_each(request, error, make_response))


def refuse_incremental(
    request: incremental.IncrementalAlterConfigsRequest, error: ApiError
) -> incremental.IncrementalAlterConfigsResponse:
    make_response = incremental.AlterConfigsResourceResponse
    return incremental.IncrementalAlterConfigsResponse(responses=_refused_each(request, error, make_response))


def _refused_each(
    request: whole.AlterConfigsRequest | incremental.IncrementalAlterConfigsRequest,
    error: ApiError,
    make_response: Callable[..., T],
) -> list[T]:
    return [
        _result(make_response, ConfigResource(each.resource_type, each.resource_name), error)
        for each in request.resources
    ]


def _result(make_response: Callable[..., T], resource: ConfigResource, error: ApiError | None) -> T:
    return make_response(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
        resource_type=resource.type,
        resource_name=resource.name,
    )


def _alter_each(
    image: ClusterImage,
    config: BrokerConfig,
    request: whole.AlterConfigsRequest | incremental.IncrementalAlterConfigsRequest,
    responses: list[T],
    make_response: Callable[..., T],
    changes_of: Callable[[ClusterImage, ConfigResource, list[Any]], Changes],
) -> Portions[None]:
    """Yields the records of each resource, and adds its result to `responses`."""
    times = Counter((each.resource_type, each.resource_name) for each in request.resources)
    for each in request.resources:
        resource = ConfigResource(each.resource_type, each.resource_name)
        refusal: ApiError | None = None
        try:
            _check_once(times[resource])
            _check_resource(image, resource)
            changes = changes_of(image, resource, each.configs)
            records = _records(image, config, resource, changes)
            if not request.validate_only:
                yield from _write(image, config, resource, changes, records)
        except ApiError as error:
            refusal = error
        responses.append(_result(make_response, resource, refusal))


def _write(
    image: ClusterImage, config: BrokerConfig, resource: ConfigResource, changes: Changes, records: list[Message]
) -> Portions[None]:
    """Writes changed settings, and what they change about ISRs and leaders.

    The last eligible replicas are cleared together with the settings: then none of them was overlooked, because another
    request made it eligible meanwhile.
    """
    deciding = {name: value for name, value in changes.items() if name in elections.DECIDING}
    if not deciding or not records or resource.type == GROUP or (resource.type == BROKER and resource.name):
        yield records
        return
    cleared = partial(elections.no_longer_eligible, image, config, after={resource: deciding})
    for change in cleared(_topics_of(image, resource)):
        yield [] if change is None else [change]
    yield [*(change for change in cleared(_topics_of(image, resource)) if change is not None), *records]
    yield from elections.settle_topics(image, config, _topics_of(image, resource))


def _topics_of(image: ClusterImage, resource: ConfigResource) -> list[TopicImage]:
    """The topics whose settings are, or may come from, those of the resource."""
    if resource.type == BROKER:
        return list(image.topics_by_name.values())
    topic = image.topic(resource.name)
    return [] if topic is None else [topic]


def _check_once(times: int) -> None:
    if times > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the request names this resource more than once")


def _check_resource(image: ClusterImage, resource: ConfigResource) -> None:
    if resource.type == TOPIC:
        if not resource.name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "topics have no common settings; name a topic")
        check_topic_name(resource.name)
        if resource.name not in image.topics_by_name:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{resource.name}' does not exist")
    elif resource.type == BROKER:
        if not resource.name:
            return
        if not resource.name.isdecimal():
            raise ApiError(ErrorCode.INVALID_REQUEST, f"'{resource.name}' is not the id of a broker")
        if int(resource.name) not in image.brokers:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"there is no broker {resource.name}")
    elif resource.type == GROUP:
        _check_group(image, resource)
    else:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"settings of resource type {resource.type} cannot be changed here; topics are 2, brokers 4 and groups 32",
        )


def _check_group(image: ClusterImage, resource: ConfigResource) -> None:
    """A group can have settings before it exists, so the number of such groups has a limit."""
    if not resource.name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "groups have no common settings but those of brokers; name a group")
    if resource not in image.configs and sum(each.type == GROUP for each in image.configs) >= MOST_GROUPS:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"{MOST_GROUPS} groups have settings of their own: delete some, or change those of the broker",
        )


class _Setting(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def value(self) -> str | None: ...


def _by_name(settings: Iterable[_Setting]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for each in settings:
        if each.name in found:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"the request names {each.name} more than once")
        found[each.name] = each.value
    return found


def _given(name: str, value: str | None) -> str:
    if value is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{name} has no value: give it one, or delete it to have the default")
    return value


def _replacing_changes(image: ClusterImage, resource: ConfigResource, wanted: list[whole.AlterableConfig]) -> Changes:
    """Removes every setting of the resource that is not named."""
    changes: Changes = dict.fromkeys(image.configs.get(resource, {}))
    for name, value in _by_name(wanted).items():
        changes[name] = _given(name, value)
    return changes


def _single_changes(
    image: ClusterImage, resource: ConfigResource, wanted: list[incremental.AlterableConfig]
) -> Changes:
    _by_name(wanted)
    current = image.configs.get(resource, {})
    keys = _KEYS[resource.type]
    changes: Changes = {}
    for each in wanted:
        if each.config_operation not in list(AlterConfigOp):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"there is no operation {each.config_operation} on {each.name}")
        operation = AlterConfigOp(each.config_operation)
        if operation is AlterConfigOp.DELETE:
            # Unknown settings too, so that one which an earlier version knew can be removed.
            changes[each.name] = None
            continue
        try:
            changes[each.name] = changed_value(
                keys, each.name, operation, _given(each.name, each.value), current.get(each.name)
            )
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, error.message) from error
    return changes


def _records(image: ClusterImage, config: BrokerConfig, resource: ConfigResource, changes: Changes) -> list[Message]:
    current = image.configs.get(resource, {})
    _validate(image, config, resource, current, changes)
    return [
        ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
        for name, value in changes.items()
        if current.get(name) != value
    ]


def _validate(
    image: ClusterImage,
    config: BrokerConfig,
    resource: ConfigResource,
    current: Mapping[str, str],
    changes: Changes,
) -> None:
    after = {name: value for name, value in {**current, **changes}.items() if value is not None}
    if resource.type != BROKER:
        try:
            if resource.type == TOPIC:
                validate_topic_configs(after, config)
            else:
                validate_group_configs(after, config)
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, error.message) from error
        return
    if has_eligible_leader_replicas(image.features) and "min.insync.replicas" in changes:
        _check_min_insync_replicas(resource, changes["min.insync.replicas"])
    try:
        config.validate_dynamic(
            {name: value for name, value in changes.items() if name in BROKER_KEYS or value},
            per_broker=bool(resource.name),
            current=current,
        )
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, error.message) from error


def _check_min_insync_replicas(resource: ConfigResource, value: str | None) -> None:
    """Which replicas are eligible to lead depends on it (KIP-966), so the whole cluster must have one value."""
    if resource.name and value is not None:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            "min.insync.replicas cannot differ between brokers while eligible.leader.replicas.version is 1",
        )
    if not resource.name and value is None:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            "min.insync.replicas of the cluster cannot be removed while eligible.leader.replicas.version is 1",
        )

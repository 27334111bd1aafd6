"""UpdateFeatures: finalizes the level of features for the whole cluster, all of a request or none (KIP-584)."""

from collections.abc import Callable

from quire.config.broker_config import BrokerConfig
from quire.controller.controller_result import ControllerResult
from quire.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    NEEDS_METADATA_VERSION,
    SUPPORTED,
    level_without_return,
    metadata_version_name,
)
from quire.metadata.image import BROKER, ClusterImage
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.metadata_records import ClearElrRecord, ConfigRecord, FeatureLevelRecord
from quire.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from quire.protocol.schema import Message

UPGRADE = 1
SAFE_DOWNGRADE = 2
UNSAFE_DOWNGRADE = 3


def update_features(
    image: ClusterImage,
    config: BrokerConfig,
    kraft_version: int,
    request: UpdateFeaturesRequest,
    *,
    check_kraft_version: Callable[[int], None],
) -> ControllerResult[UpdateFeaturesResponse]:
    """`check_kraft_version` raises an ApiError if the log cannot change to another kraft.version."""
    levels = image.features | {KRAFT_VERSION: kraft_version}
    after = dict(levels)
    records: list[Message] = []
    try:
        for update in request.feature_updates:
            _check(image, levels, update)
            after[update.feature] = update.max_version_level
            if levels.get(update.feature, 0) != update.max_version_level:
                records += _records(image, config, update)
        _check_together(after)
        upgrade = kraft_upgrade(request, kraft_version)
        if upgrade is not None:
            check_kraft_version(upgrade)
    except ApiError as error:
        return ControllerResult(UpdateFeaturesResponse(error_code=error.code, error_message=error.message))
    return ControllerResult(UpdateFeaturesResponse(error_message=None), [] if request.validate_only else records)


def kraft_upgrade(request: UpdateFeaturesRequest, kraft_version: int) -> int | None:
    """The kraft.version that a request asks for, if it is another one than that of the log."""
    wanted = [each.max_version_level for each in request.feature_updates if each.feature == KRAFT_VERSION]
    return wanted[-1] if wanted and wanted[-1] != kraft_version else None


def _check(image: ClusterImage, levels: dict[str, int], update: FeatureUpdateKey) -> None:
    name, level = update.feature, update.max_version_level
    kind = SAFE_DOWNGRADE if update.allow_downgrade else update.upgrade_type
    if name not in SUPPORTED:
        raise _invalid(f"no feature {name} is known here")
    low, high = SUPPORTED[name]
    if not low <= level <= high:
        raise _invalid(f"{name} cannot be at level {level}: levels {low} to {high} are known")
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise _invalid(f"there is no upgrade type {kind}; 1 upgrades, 2 and 3 downgrade")
    present = levels.get(name, 0)
    if level == present:
        return
    if level > present and kind != UPGRADE:
        raise _invalid(f"{name} is at level {present}, so going to {level} is no downgrade: ask for an upgrade")
    if name == KRAFT_VERSION:
        if level < present:
            raise _invalid(f"kraft.version cannot go down from {present} to {level}: the log names the voters")
        return
    _check_nodes(image, name, level)
    if level > present:
        return
    if kind == UPGRADE:
        raise _invalid(f"{name} is at level {present}, and going down to {level} must be asked for as a downgrade")
    if name == METADATA_VERSION:
        _check_nothing_is_lost(present, level)


def _check_nothing_is_lost(present: int, level: int) -> None:
    """As in Apache Kafka, where an unsafe downgrade of metadata.version is refused too."""
    changed = level_without_return(present, level)
    if changed is not None:
        raise _invalid(
            f"metadata.version cannot go down from {present} to {level}: what records of level {changed} "
            f"({metadata_version_name(changed)}) hold would be lost, and an unsafe downgrade does not exist; it can go "
            f"down to {changed} at most"
        )


def _check_nodes(image: ClusterImage, name: str, level: int) -> None:
    nodes = [(f"broker {broker.broker_id}", broker.features) for broker in image.brokers_sorted()]
    nodes += [(f"controller {id_}", controller.features) for id_, controller in sorted(image.controllers.items())]
    for node, features in nodes:
        ranges = {feature: (low, high) for feature, low, high in features}
        low, high = ranges.get(name, (0, 0))
        if level and not low <= level <= high:
            raise _invalid(f"{name} cannot be at level {level}: {node} knows {low} to {high}")


def _check_together(levels: dict[str, int]) -> None:
    for (name, level), needed in NEEDS_METADATA_VERSION.items():
        if levels.get(name, 0) >= level and levels.get(METADATA_VERSION, 0) < needed:
            raise _invalid(f"{name} {level} needs metadata.version {needed} or later")


def _records(image: ClusterImage, config: BrokerConfig, update: FeatureUpdateKey) -> list[Message]:
    if update.feature == KRAFT_VERSION:
        return []  # It is a control record of the log: see `kraft_upgrade`.
    level: Message = FeatureLevelRecord(name=update.feature, feature_level=update.max_version_level)
    if update.feature != ELIGIBLE_LEADER_REPLICAS_VERSION:
        return [level]
    if update.max_version_level == 0:
        return [level, ClearElrRecord(topic_name="")]
    return [level, *min_insync_replicas_records(image, config)]


def min_insync_replicas_records(image: ClusterImage, config: BrokerConfig) -> list[Message]:
    """With eligible leader replicas the whole cluster has one min.insync.replicas, in the log (KIP-966)."""
    records: list[Message] = []
    if "min.insync.replicas" not in image.broker_configs(None):
        value = str(config.get_int("min.insync.replicas"))
        records.append(ConfigRecord(resource_type=BROKER, resource_name="", name="min.insync.replicas", value=value))
    for resource in sorted(image.configs):
        if resource.type == BROKER and resource.name and "min.insync.replicas" in image.configs[resource]:
            records.append(
                ConfigRecord(resource_type=BROKER, resource_name=resource.name, name="min.insync.replicas", value=None)
            )
    return records


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_UPDATE_VERSION, f"no feature was changed: {message}")

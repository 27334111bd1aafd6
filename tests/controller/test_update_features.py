"""UpdateFeatures, compared with Apache Kafka 4.3.1's answers to the same requests."""

from collections.abc import Callable

import pytest

from quire.controller.features import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE, update_features
from quire.metadata.image import ClusterImage
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.metadata_records import BrokerFeature, RegisterBrokerRecord
from quire.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.controller.images import CONFIG, after, cluster, partition, topic

ELR = "eligible.leader.replicas.version"
Update = tuple[str, int, int]


def agrees(_version: int) -> None:
    """A check that always allows the change of kraft.version."""


def update(
    image: ClusterImage,
    *updates: Update,
    validate_only: bool = False,
    kraft_version: int = 1,
    check_kraft_version: Callable[[int], None] = agrees,
) -> tuple[int, ClusterImage]:
    keys = [FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind) for name, level, kind in updates]
    request = UpdateFeaturesRequest(feature_updates=keys, validate_only=validate_only)
    result = update_features(image, CONFIG, kraft_version, request, check_kraft_version=check_kraft_version)
    assert (result.response.error_message is None) == (result.response.error_code == 0)
    return result.response.error_code, after(image, result.records)


def test_a_feature_goes_up_and_down() -> None:
    code, image = update(cluster(), ("group.version", 1, UPGRADE))
    assert (code, image.features["group.version"]) == (0, 1)
    code, image = update(image, ("group.version", 0, SAFE_DOWNGRADE))
    assert (code, "group.version" in image.features) == (0, False)


def test_the_current_level_is_accepted() -> None:
    assert update(cluster(), ("metadata.version", 30, UPGRADE), ("kraft.version", 1, UPGRADE))[0] == 0


def test_validating_changes_nothing() -> None:
    code, image = update(cluster(), ("group.version", 1, UPGRADE), validate_only=True)
    assert (code, image) == (0, cluster())


@pytest.mark.parametrize(
    "asked",
    [
        ("nope", 1, UPGRADE),
        ("group.version", 5, UPGRADE),
        ("group.version", -1, SAFE_DOWNGRADE),
        ("group.version", 0, UPGRADE),
        ("group.version", 1, 9),
        ("metadata.version", 31, UPGRADE),
        ("metadata.version", 29, UPGRADE),
        ("metadata.version", 29, SAFE_DOWNGRADE),
        ("metadata.version", 29, UNSAFE_DOWNGRADE),
        ("metadata.version", 0, SAFE_DOWNGRADE),
        ("kraft.version", 0, SAFE_DOWNGRADE),
    ],
    ids=str,
)
def test_levels_that_cannot_be(asked: Update) -> None:
    image = cluster(features={"group.version": 1})
    assert update(image, asked) == (ErrorCode.INVALID_UPDATE_VERSION, image)


def test_a_downgrade_to_a_newer_level_is_refused() -> None:
    for kind in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        assert update(cluster(), ("group.version", 1, kind)) == (ErrorCode.INVALID_UPDATE_VERSION, cluster())


@pytest.mark.parametrize(
    ("present", "level", "allowed"),
    [
        (29, 23, True),
        (29, 22, False),
        (22, 17, True),
        (22, 16, False),
        (16, 15, True),
        (13, 12, False),
        (12, 11, True),
        (30, 23, False),
    ],
)
def test_metadata_version_goes_down_as_long_as_no_metadata_is_lost(present: int, level: int, allowed: bool) -> None:
    """The limits are those of Apache Kafka 4.3.1."""
    image = cluster(features={"metadata.version": present})
    for kind in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        code, later = update(image, ("metadata.version", level, kind))
        assert (code == ErrorCode.NONE) == allowed
        assert later.features["metadata.version"] == (level if allowed else present)
        assert update(later, ("metadata.version", present, UPGRADE)) == (ErrorCode.NONE, image)


def test_a_downgrade_that_would_lose_metadata_names_the_level_that_it_can_reach() -> None:
    key = FeatureUpdateKey(feature="metadata.version", max_version_level=20, upgrade_type=UNSAFE_DOWNGRADE)
    request = UpdateFeaturesRequest(feature_updates=[key])
    image = cluster(features={"metadata.version": 29})
    answer = update_features(image, CONFIG, 1, request, check_kraft_version=agrees).response
    assert "what records of level 23 (4.0-IV1) hold would be lost" in str(answer.error_message)
    assert "it can go down to 23 at most" in str(answer.error_message)


def test_one_bad_feature_spoils_the_request() -> None:
    image = cluster()
    assert update(image, ("group.version", 1, UPGRADE), ("nope", 1, UPGRADE)) == (
        ErrorCode.INVALID_UPDATE_VERSION,
        image,
    )


@pytest.mark.parametrize("validate_only", [False, True])
def test_a_log_that_cannot_follow_spoils_the_request(validate_only: bool) -> None:
    image = cluster()

    def refuses(version: int) -> None:
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, f"not to {version} now")

    asked = (("group.version", 1, UPGRADE), ("kraft.version", 1, UPGRADE))
    code, later = update(image, *asked, kraft_version=0, validate_only=validate_only, check_kraft_version=refuses)
    assert (code, later) == (ErrorCode.REQUEST_TIMED_OUT, image)
    code, later = update(image, *asked, kraft_version=1, validate_only=validate_only, check_kraft_version=refuses)
    assert code == ErrorCode.NONE


def test_a_broker_that_cannot_follow_holds_a_feature_back() -> None:
    old = RegisterBrokerRecord(
        broker_id=2,
        broker_epoch=9,
        features=[BrokerFeature(name="group.version", min_supported_version=0, max_supported_version=0)],
    )
    image = cluster(old)
    assert update(image, ("group.version", 1, UPGRADE)) == (ErrorCode.INVALID_UPDATE_VERSION, image)


def test_an_old_request_may_say_downgrade_in_the_old_way() -> None:
    key = FeatureUpdateKey(feature="group.version", max_version_level=0, allow_downgrade=True)
    image = cluster(features={"group.version": 1})
    request = UpdateFeaturesRequest(feature_updates=[key])
    result = update_features(image, CONFIG, 1, request, check_kraft_version=agrees)
    assert result.response.error_code == 0


def test_eligible_leader_replicas_put_the_minimum_isr_into_the_log() -> None:
    code, image = update(cluster(), (ELR, 1, UPGRADE))
    assert (code, image.broker_configs(None)) == (0, {"min.insync.replicas": "1"})


def test_eligible_leader_replicas_need_a_metadata_version() -> None:
    image = cluster(features={"metadata.version": 22})
    assert update(image, (ELR, 1, UPGRADE)) == (ErrorCode.INVALID_UPDATE_VERSION, image)


def test_without_the_feature_no_replica_outside_the_isr_is_eligible() -> None:
    image = cluster(topic(), partition(0, (1, 2), isr=(1,), elr=(2,)), brokers=2, features={ELR: 1})
    code, later = update(image, (ELR, 0, SAFE_DOWNGRADE))
    assert (code, later.topics_by_name["orders"].partitions[0].elr) == (0, ())

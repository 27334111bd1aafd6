"""UpdateFeatures: a level for the whole cluster."""

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode

UNSAFE_DOWNGRADE = 3


def update(node: SimulatedNode, feature: str, level: int, *, validate_only: bool = False) -> UpdateFeaturesResponse:
    change = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=UNSAFE_DOWNGRADE)
    request = UpdateFeaturesRequest(feature_updates=[change], validate_only=validate_only)
    return node.call(request, 2, UpdateFeaturesResponse)


def test_a_level_is_changed_unless_it_is_only_validated(node: SimulatedNode) -> None:
    before = node.node.image.features["group.version"]
    assert update(node, "group.version", 0, validate_only=True).error_code == ErrorCode.NONE
    assert node.node.image.features["group.version"] == before
    assert update(node, "group.version", 0).error_code == ErrorCode.NONE
    assert node.node.image.features.get("group.version", 0) == 0


def test_an_unknown_level_is_refused(node: SimulatedNode) -> None:
    before = dict(node.node.image.features)
    assert update(node, "group.version", 99).error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert node.node.image.features == before


def test_changing_features_needs_alter_on_the_cluster(node: SimulatedNode) -> None:
    before = dict(node.node.image.features)
    deny(node, (AclOperation.ALTER, CLUSTER_NAME))
    answer = update(node, "group.version", 0)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert answer.error_message == "changing the cluster's features is not allowed"
    assert node.node.image.features == before

"""ApiVersions: what a listener serves, and the features that a client of this version can read."""

import pytest

from quire.node.api import SERVED
from quire.protocol import apis
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import API_VERSIONS


def test_a_controller_listener_offers_only_what_controllers_answer(node: SimulatedNode) -> None:
    offered = node.call(API_VERSIONS, 3, ApiVersionsResponse)
    node.info.listener = "CONTROLLER"
    node.info.state = None
    from_controller = node.call(API_VERSIONS, 3, ApiVersionsResponse)
    keys = {api.api_key for api in from_controller.api_keys}
    assert 0 not in keys
    assert 19 in keys
    only_nodes_send = {apis.api_key(name) for name, served in SERVED.items() if not served.on_broker}
    assert keys - {api.api_key for api in offered.api_keys} == only_nodes_send


@pytest.mark.parametrize(("version", "expected"), [(3, False), (4, True)])
def test_old_java_clients_are_spared_features_that_start_at_level_0(
    node: SimulatedNode, version: int, expected: bool
) -> None:
    response = node.call(API_VERSIONS, version, ApiVersionsResponse)
    assert any(feature.min_version == 0 for feature in response.supported_features) is expected


def test_finalized_features_are_those_of_the_metadata_image(node: SimulatedNode) -> None:
    response = node.call(API_VERSIONS, 4, ApiVersionsResponse)
    levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
    of_image = {name: level for name, level in node.node.image.features.items() if level > 0}
    assert of_image.items() <= levels.items()
    assert set(levels) - set(of_image) == {"kraft.version"}
    assert response.finalized_features_epoch == node.node.image.offset


@pytest.mark.parametrize(("name", "software_version"), [("", "1"), ("a b", "1"), ("a", "-1"), ("a", "1.")])
def test_software_with_an_impossible_name_or_version_is_refused(
    node: SimulatedNode, name: str, software_version: str
) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software_version)
    answer = node.call(request, 3, ApiVersionsResponse)
    assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, [])


def test_versions_without_a_software_name_do_not_need_one(node: SimulatedNode) -> None:
    assert node.call(ApiVersionsRequest(), 2, ApiVersionsResponse).error_code == ErrorCode.NONE

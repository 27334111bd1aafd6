"""ApiVersions: the APIs and versions that this listener serves, and the cluster's features.

Every client sends this first. The response to a version that this node does not know is in version 0 and has the
served versions, so that a newer client can choose one of them.

Versions on broker and controller listeners:
    0  the first version
    1  throttle time in the response
    2  a throttled client gets its response at once and waits by itself (KIP-219)
    3  flexible encoding; the client's software (KIP-511); features (KIP-584)
    4  features whose lowest level is 0
"""

import re
from typing import TYPE_CHECKING

from quire.metadata.features import KRAFT_VERSION, SUPPORTED
from quire.node.api import SERVED
from quire.node.context import Context
from quire.protocol import apis
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from quire.node.node import Node

NAMES_SOFTWARE = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")

FIRST_VERSION_WITH_LEVEL_0 = 4
"""Older Java clients fail on a feature whose lowest level is 0."""


def handle(node: "Node", context: Context, request: ApiVersionsRequest) -> ApiVersionsResponse:
    software = (request.client_software_name, request.client_software_version)
    if context.api_version >= NAMES_SOFTWARE and not all(map(_SOFTWARE.fullmatch, software)):
        raise ApiError(ErrorCode.INVALID_REQUEST, "a client's name and version are letters, digits, '.' and '-'")
    features = {**node.image.features, KRAFT_VERSION: node.metadata.log.kraft_version}
    controller = node.is_controller_listener(context.listener)
    return ApiVersionsResponse(
        api_keys=_ranges(controller),
        supported_features=[
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in sorted(SUPPORTED.items())
            if low > 0 or context.api_version >= FIRST_VERSION_WITH_LEVEL_0
        ],
        finalized_features_epoch=node.image.offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(features.items())
            if level > 0
        ],
    )


def refuse(request: ApiVersionsRequest, error: ApiError) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=error.code)


def unsupported_version(controller: bool) -> ApiVersionsResponse:
    """The response, in version 0, to a version that this node does not know."""
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_ranges(controller))


def _ranges(controller: bool) -> list[ApiVersion]:
    ranges = [
        ApiVersion(
            api_key=apis.api_key(name),
            min_version=served.oldest_on(controller=controller)
            if served.advertised_from is None
            else served.advertised_from,
            max_version=served.newest,
        )
        for name, served in SERVED.items()
        if (served.on_controller if controller else served.on_broker)
    ]
    return sorted(ranges, key=lambda entry: entry.api_key)

"""The cluster itself: its nodes, features and log directories."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from quire import __version__
from quire.address import Address
from quire.client.admin.results import ask_controller, error
from quire.client.cluster import ANY, Cluster
from quire.client.errors import UnsupportedError
from quire.client.metadata import Broker
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from quire.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from quire.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from quire.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from quire.steps import Steps


@dataclass(slots=True, frozen=True)
class ClusterDescription:
    cluster_id: str
    controller_id: int
    brokers: list[Broker]
    fenced: list[int]


@dataclass(slots=True, frozen=True)
class Feature:
    """The levels that the brokers support, and the finalized level of the cluster (0: not in use)."""

    name: str
    supported_min: int
    supported_max: int
    finalized: int


@dataclass(slots=True, frozen=True)
class ReplicaSize:
    topic: str
    partition: int
    size_bytes: int
    offset_lag: int
    is_future: bool = False
    """Whether it is the copy of a replica that moves to this directory."""


@dataclass(slots=True, frozen=True)
class LogDir:
    path: str
    error: ApiError | None
    total_bytes: int
    usable_bytes: int
    replicas: list[ReplicaSize]


def describe_cluster(cluster: Cluster, *, with_fenced: bool = False) -> Steps[ClusterDescription]:
    """The brokers that serve, and `with_fenced` also those that do not, if the broker supports that."""
    request = DescribeClusterRequest(include_fenced_brokers=with_fenced)
    try:
        response = yield from cluster.ask(ANY, request, DescribeClusterResponse)
    except UnsupportedError:
        if not with_fenced:
            raise
        response = yield from cluster.ask(ANY, DescribeClusterRequest(), DescribeClusterResponse)
    failed = error(response.error_code, response.error_message, "the cluster cannot be described")
    if failed is not None:
        raise failed
    brokers = [Broker(found.broker_id, Address(found.host, found.port), found.rack) for found in response.brokers]
    fenced = [found.broker_id for found in response.brokers if found.is_fenced]
    return ClusterDescription(response.cluster_id, response.controller_id, brokers, fenced)


def describe_features(cluster: Cluster) -> Steps[list[Feature]]:
    request = ApiVersionsRequest(client_software_name="quire", client_software_version=__version__)
    response = yield from cluster.ask(ANY, request, ApiVersionsResponse)
    failed = error(response.error_code, None, "the features cannot be listed")
    if failed is not None:
        raise failed
    finalized = {feature.name: feature.max_version_level for feature in response.finalized_features}
    supported = {feature.name: (feature.min_version, feature.max_version) for feature in response.supported_features}
    return [
        Feature(name, *supported.get(name, (0, 0)), finalized.get(name, 0))
        for name in sorted({**supported, **finalized})
    ]


class UpgradeType(IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update_features(
    cluster: Cluster, levels: Mapping[str, int], kind: UpgradeType, *, validate_only: bool = False
) -> Steps[None]:
    """Changes the levels of all these features or of none."""
    request = UpdateFeaturesRequest(
        timeout_ms=int(cluster.request_timeout_ms),
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind) for name, level in levels.items()
        ],
        validate_only=validate_only,
    )
    response = yield from ask_controller(cluster, request, UpdateFeaturesResponse, lambda answer: [answer.error_code])
    for code, message in [
        (response.error_code, response.error_message),
        *((result.error_code, result.error_message) for result in response.results),
    ]:
        failed = error(code, message, f"{', '.join(levels)} were not changed")
        if failed is not None:
            raise failed


def describe_log_dirs(cluster: Cluster, node: int) -> Steps[list[LogDir]]:
    """The log directories of a node, and the sizes of the replicas in them."""
    yield from cluster.refresh([])
    response = yield from cluster.ask(node, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    if response.error_code:
        raise ApiError(ErrorCode(response.error_code), f"the log directories of node {node} cannot be described")
    return [
        LogDir(
            found.log_dir,
            error(found.error_code, None, f"{found.log_dir} is offline"),
            found.total_bytes,
            found.usable_bytes,
            [
                ReplicaSize(topic.name, part.partition_index, part.partition_size, part.offset_lag, part.is_future_key)
                for topic in found.topics
                for part in topic.partitions
            ],
        )
        for found in response.results
    ]

"""The table of APIs: names, versions, whether brokers or controllers answer them, and their message classes.

`request_class` imports a message module when its API is first used, so that importing this module stays cheap. The
versions are those of Apache Kafka 4.3; the node decides which ones it advertises.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from quire.protocol.schema import Message

BROKER: Final = 1
CONTROLLER: Final = 2


class Api:
    """One API. `flexible` is its first flexible version; `listeners` says whether brokers or controllers answer it."""

    __slots__ = ("cluster_action", "flexible", "key", "listeners", "name", "newest", "oldest")

    def __init__(
        self,
        key: int,
        name: str,
        oldest: int,
        newest: int,
        flexible: int | None,
        listeners: int,
        *,
        cluster_action: bool = False,
    ) -> None:
        self.key = key
        self.name = name
        self.oldest = oldest
        self.newest = newest
        self.flexible = flexible
        self.listeners = listeners
        self.cluster_action = cluster_action

    def __repr__(self) -> str:
        return f"Api({self.key}, {self.name!r}, {self.oldest}, {self.newest})"


APIS: Final = (
    Api(0, "Produce", 3, 13, 9, BROKER),
    Api(1, "Fetch", 4, 18, 12, BROKER | CONTROLLER),
    Api(2, "ListOffsets", 1, 11, 6, BROKER),
    Api(3, "Metadata", 0, 13, 9, BROKER),
    Api(8, "OffsetCommit", 2, 10, 8, BROKER),
    Api(9, "OffsetFetch", 1, 10, 6, BROKER),
    Api(10, "FindCoordinator", 0, 6, 3, BROKER),
    Api(11, "JoinGroup", 0, 9, 6, BROKER),
    Api(12, "Heartbeat", 0, 4, 4, BROKER),
    Api(13, "LeaveGroup", 0, 5, 4, BROKER),
    Api(14, "SyncGroup", 0, 5, 4, BROKER),
    Api(15, "DescribeGroups", 0, 6, 5, BROKER),
    Api(16, "ListGroups", 0, 5, 3, BROKER),
    Api(17, "SaslHandshake", 0, 1, None, BROKER | CONTROLLER),
    Api(18, "ApiVersions", 0, 4, 3, BROKER | CONTROLLER),
    Api(19, "CreateTopics", 2, 7, 5, BROKER | CONTROLLER),
    Api(20, "DeleteTopics", 1, 6, 4, BROKER | CONTROLLER),
    Api(21, "DeleteRecords", 0, 2, 2, BROKER),
    Api(22, "InitProducerId", 0, 6, 2, BROKER),
    Api(23, "OffsetForLeaderEpoch", 2, 4, 4, BROKER),
    Api(24, "AddPartitionsToTxn", 0, 5, 3, BROKER),
    Api(25, "AddOffsetsToTxn", 0, 4, 3, BROKER),
    Api(26, "EndTxn", 0, 5, 3, BROKER),
    Api(27, "WriteTxnMarkers", 1, 2, 1, BROKER, cluster_action=True),
    Api(28, "TxnOffsetCommit", 0, 5, 3, BROKER),
    Api(29, "DescribeAcls", 1, 3, 2, BROKER | CONTROLLER),
    Api(30, "CreateAcls", 1, 3, 2, BROKER | CONTROLLER),
    Api(31, "DeleteAcls", 1, 3, 2, BROKER | CONTROLLER),
    Api(32, "DescribeConfigs", 1, 4, 4, BROKER | CONTROLLER),
    Api(33, "AlterConfigs", 0, 2, 2, BROKER | CONTROLLER),
    Api(34, "AlterReplicaLogDirs", 1, 2, 2, BROKER),
    Api(35, "DescribeLogDirs", 1, 5, 2, BROKER),
    Api(36, "SaslAuthenticate", 0, 2, 2, BROKER | CONTROLLER),
    Api(37, "CreatePartitions", 0, 3, 2, BROKER | CONTROLLER),
    Api(38, "CreateDelegationToken", 1, 3, 2, BROKER | CONTROLLER),
    Api(39, "RenewDelegationToken", 1, 2, 2, BROKER | CONTROLLER),
    Api(40, "ExpireDelegationToken", 1, 2, 2, BROKER | CONTROLLER),
    Api(41, "DescribeDelegationToken", 1, 3, 2, BROKER | CONTROLLER),
    Api(42, "DeleteGroups", 0, 2, 2, BROKER),
    Api(43, "ElectLeaders", 0, 2, 2, BROKER | CONTROLLER),
    Api(44, "IncrementalAlterConfigs", 0, 1, 1, BROKER | CONTROLLER),
    Api(45, "AlterPartitionReassignments", 0, 1, 0, BROKER | CONTROLLER),
    Api(46, "ListPartitionReassignments", 0, 0, 0, BROKER | CONTROLLER),
    Api(47, "OffsetDelete", 0, 0, None, BROKER),
    Api(48, "DescribeClientQuotas", 0, 1, 1, BROKER),
    Api(49, "AlterClientQuotas", 0, 1, 1, BROKER | CONTROLLER),
    Api(50, "DescribeUserScramCredentials", 0, 0, 0, BROKER | CONTROLLER),
    Api(51, "AlterUserScramCredentials", 0, 0, 0, BROKER | CONTROLLER),
    Api(52, "Vote", 0, 2, 0, CONTROLLER, cluster_action=True),
    Api(53, "BeginQuorumEpoch", 0, 1, 1, CONTROLLER, cluster_action=True),
    Api(54, "EndQuorumEpoch", 0, 1, 1, CONTROLLER, cluster_action=True),
    Api(55, "DescribeQuorum", 0, 2, 0, BROKER | CONTROLLER, cluster_action=True),
    Api(56, "AlterPartition", 2, 3, 0, CONTROLLER, cluster_action=True),
    Api(57, "UpdateFeatures", 0, 2, 0, BROKER | CONTROLLER, cluster_action=True),
    Api(58, "Envelope", 0, 0, 0, CONTROLLER, cluster_action=True),
    Api(59, "FetchSnapshot", 0, 1, 0, CONTROLLER),
    Api(60, "DescribeCluster", 0, 2, 0, BROKER | CONTROLLER),
    Api(61, "DescribeProducers", 0, 0, 0, BROKER),
    Api(62, "BrokerRegistration", 0, 4, 0, CONTROLLER, cluster_action=True),
    Api(63, "BrokerHeartbeat", 0, 2, 0, CONTROLLER, cluster_action=True),
    Api(64, "UnregisterBroker", 0, 0, 0, BROKER | CONTROLLER),
    Api(65, "DescribeTransactions", 0, 0, 0, BROKER),
    Api(66, "ListTransactions", 0, 2, 0, BROKER),
    Api(67, "AllocateProducerIds", 0, 0, 0, CONTROLLER, cluster_action=True),
    Api(68, "ConsumerGroupHeartbeat", 0, 1, 0, BROKER),
    Api(69, "ConsumerGroupDescribe", 0, 1, 0, BROKER),
    Api(70, "ControllerRegistration", 0, 0, 0, CONTROLLER),
    Api(71, "GetTelemetrySubscriptions", 0, 0, 0, BROKER),
    Api(72, "PushTelemetry", 0, 0, 0, BROKER),
    Api(73, "AssignReplicasToDirs", 0, 0, 0, CONTROLLER),
    Api(74, "ListConfigResources", 0, 1, 0, BROKER),
    Api(75, "DescribeTopicPartitions", 0, 0, 0, BROKER),
    Api(76, "ShareGroupHeartbeat", 1, 1, 0, BROKER),
    Api(77, "ShareGroupDescribe", 1, 1, 0, BROKER),
    Api(78, "ShareFetch", 1, 2, 0, BROKER),
    Api(79, "ShareAcknowledge", 1, 2, 0, BROKER),
    Api(80, "AddRaftVoter", 0, 1, 0, BROKER | CONTROLLER),
    Api(81, "RemoveRaftVoter", 0, 0, 0, BROKER | CONTROLLER),
    Api(82, "UpdateRaftVoter", 0, 0, 0, CONTROLLER),
    Api(83, "InitializeShareGroupState", 0, 0, 0, BROKER, cluster_action=True),
    Api(84, "ReadShareGroupState", 0, 0, 0, BROKER, cluster_action=True),
    Api(85, "WriteShareGroupState", 0, 1, 0, BROKER, cluster_action=True),
    Api(86, "DeleteShareGroupState", 0, 0, 0, BROKER, cluster_action=True),
    Api(87, "ReadShareGroupStateSummary", 0, 1, 0, BROKER, cluster_action=True),
    Api(88, "StreamsGroupHeartbeat", 0, 0, 0, BROKER),
    Api(89, "StreamsGroupDescribe", 0, 0, 0, BROKER),
    Api(90, "DescribeShareGroupOffsets", 0, 1, 0, BROKER),
    Api(91, "AlterShareGroupOffsets", 0, 0, 0, BROKER),
    Api(92, "DeleteShareGroupOffsets", 0, 0, 0, BROKER),
)

API_NAMES: Final[dict[int, str]] = {api.key: api.name for api in APIS}
VALID_VERSIONS: Final[dict[int, tuple[int, int]]] = {api.key: (api.oldest, api.newest) for api in APIS}

API_VERSIONS_KEY: Final = 18

_BY_KEY: Final = {api.key: api for api in APIS}
_KEYS: Final = {api.name: api.key for api in APIS}
# Above every version, for APIs without a flexible version.
_FLEXIBLE: Final = {api.key: 1 << 15 if api.flexible is None else api.flexible for api in APIS}
_request_classes: dict[int, "type[Message]"] = {}
_response_classes: dict[int, "type[Message]"] = {}


def api(key: int) -> Api:
    """The row of this key; KeyError if there is no such API."""
    return _BY_KEY[key]


def api_key(name: str) -> int:
    """The key of an API by its name, such as "Produce"; KeyError if there is none."""
    return _KEYS[name]


def request_class(key: int) -> "type[Message]":
    """The request class of this API; KeyError if there is no such API."""
    try:
        return _request_classes[key]
    except KeyError:
        _load(key)
        return _request_classes[key]


def response_class(key: int) -> "type[Message]":
    """The response class of this API; KeyError if there is no such API."""
    try:
        return _response_classes[key]
    except KeyError:
        _load(key)
        return _response_classes[key]


def request_header_version(key: int, version: int) -> int:
    return 2 if version >= _FLEXIBLE[key] else 1


def response_header_version(key: int, version: int) -> int:
    """Always 0 for ApiVersions: its client does not know yet which versions the node supports."""
    return 1 if version >= _FLEXIBLE[key] and key != API_VERSIONS_KEY else 0


def module_name(name: str) -> str:
    """The file of an API in `quire.protocol.messages`: "ListOffsets" is in list_offsets."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def _load(key: int) -> None:
    name = _BY_KEY[key].name
    module = import_module(f"quire.protocol.messages.{module_name(name)}")
    _request_classes[key] = getattr(module, f"{name}Request")
    _response_classes[key] = getattr(module, f"{name}Response")

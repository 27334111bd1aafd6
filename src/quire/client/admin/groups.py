"""Groups: list them, describe their members and assignments, and delete groups without members."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from quire.client.admin.group_descriptions import CLASSIC, CONSUMER, Group, classic_group, consumer_group
from quire.client.admin.results import error
from quire.client.cluster import Cluster
from quire.client.coordinators import CoordinatorType, ask_coordinators, ask_every_broker
from quire.client.errors import ClientError, UnsupportedError
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from quire.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from quire.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from quire.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from quire.steps import Steps


@dataclass(slots=True, frozen=True)
class ListedGroup:
    group_id: str
    protocol: str  # classic, consumer, share or streams; "" from older brokers
    protocol_type: str  # what the members of a classic group do: consumer, connect, ...
    state: str
    coordinator: int

    @property
    def reads(self) -> bool:
        """Whether it reads partitions and commits offsets, as all groups except share groups (KIP-932) do."""
        return self.protocol in ("", CLASSIC, CONSUMER)


def list_groups(
    cluster: Cluster, *, states: Sequence[str] = (), protocols: Sequence[str] = ()
) -> Steps[tuple[list[ListedGroup], ApiError | ClientError | None]]:
    """The groups by name, and the error of a broker that could not be asked, whose groups are missing."""
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(protocols))
    answers, failure = yield from ask_every_broker(
        cluster,
        request,
        ListGroupsResponse,
        lambda answer: answer.error_code,
        versions=(5 if protocols else 4 if states else 0, 5),
    )
    groups = [
        ListedGroup(group.group_id, group.group_type.lower(), group.protocol_type, group.group_state, node)
        for node, answer in answers.items()
        for group in answer.groups
    ]
    return sorted(groups, key=lambda group: group.group_id), failure


def describe_groups(cluster: Cluster, group_ids: Iterable[str]) -> Steps[dict[str, Group | ApiError]]:
    """Describes groups of both protocols. The protocol is not known before, so the newer one is tried first."""
    wanted = list(dict.fromkeys(group_ids))
    found: dict[str, Group | ApiError] = {}
    with suppress(UnsupportedError):  # brokers before KIP-848 have only classic groups
        found = yield from _describe_consumer_groups(cluster, wanted)
    others = [name for name in wanted if _may_be_classic(found.get(name))]
    found |= yield from _describe_classic_groups(cluster, others)
    return {name: found[name] for name in wanted}


def delete_groups(cluster: Cluster, group_ids: Iterable[str]) -> Steps[dict[str, ApiError | None]]:
    def read(response: DeleteGroupsResponse) -> Mapping[str, ApiError | None]:
        return {
            answer.group_id: error(answer.error_code, None, _why_not_deleted(answer.group_id, answer.error_code))
            for answer in response.results
        }

    return (
        yield from ask_coordinators(
            cluster,
            CoordinatorType.GROUP,
            list(group_ids),
            lambda names: DeleteGroupsRequest(groups_names=names),
            DeleteGroupsResponse,
            read,
            repeatable=False,
        )
    )


def _why_not_deleted(name: str, code: int) -> str:
    if code == ErrorCode.GROUP_ID_NOT_FOUND:
        return f"group {name} does not exist"
    if code == ErrorCode.NON_EMPTY_GROUP:
        return f"group {name} has members"
    return f"group {name} was not deleted"


def _may_be_classic(result: Group | ApiError | None) -> bool:
    if isinstance(result, ApiError):
        return result.code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
    return result is None


def _describe_consumer_groups(cluster: Cluster, names: list[str]) -> Steps[dict[str, Group | ApiError]]:
    def read(response: ConsumerGroupDescribeResponse) -> Mapping[str, Group | ApiError]:
        return {
            answer.group_id: consumer_group(answer, _coordinator(cluster, answer.group_id))
            for answer in response.groups
        }

    return (
        yield from ask_coordinators(
            cluster,
            CoordinatorType.GROUP,
            names,
            lambda asked: ConsumerGroupDescribeRequest(group_ids=asked),
            ConsumerGroupDescribeResponse,
            read,
        )
    )


def _describe_classic_groups(cluster: Cluster, names: list[str]) -> Steps[dict[str, Group | ApiError]]:
    def read(response: DescribeGroupsResponse) -> Mapping[str, Group | ApiError]:
        return {
            answer.group_id: classic_group(answer, _coordinator(cluster, answer.group_id)) for answer in response.groups
        }

    return (
        yield from ask_coordinators(
            cluster,
            CoordinatorType.GROUP,
            names,
            lambda asked: DescribeGroupsRequest(groups=asked),
            DescribeGroupsResponse,
            read,
        )
    )


def _coordinator(cluster: Cluster, name: str) -> int:
    return cluster.metadata.coordinators[CoordinatorType.GROUP, name]

"""The state of a broker's coordinators: groups with members and offsets, and transactions.

Apache Kafka and Quire get the same requests. Bytes are turned into text one to one (Latin-1), so that an answer can
be kept as JSON; lists are sorted where their order means nothing.
"""

from typing import Any

from quire.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from quire.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from quire.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from quire.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from quire.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from quire.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from quire.testing import WireConnection

LIST_GROUPS, DESCRIBE_GROUPS, DESCRIBE_CONSUMER_GROUPS = 5, 6, 1
FETCH_OFFSETS, LIST_TRANSACTIONS, DESCRIBE_TRANSACTIONS = 9, 1, 0
"""The versions of the requests."""

Known = dict[str, Any]


def coordinated(bootstrap: str) -> Known:
    with WireConnection(bootstrap) as connection:
        groups = connection.call(ListGroupsRequest(), LIST_GROUPS, ListGroupsResponse)
        assert groups.error_code == 0, groups
        return {
            "groups": {group.group_id: _group(connection, group) for group in groups.groups},
            "transactions": _transactions(connection),
        }


def when_replayed(bootstrap: str) -> Known | None:
    """The same; None while a coordinator still replays what it once knew."""
    try:
        return coordinated(bootstrap)
    except AssertionError:
        return None


def _group(connection: WireConnection, group: ListedGroup) -> Known:
    known: Known = {"type": group.group_type, "state": group.group_state, "protocol_type": group.protocol_type}
    known["offsets"] = _offsets(connection, group.group_id)
    if group.group_type == "consumer":
        return known | _consumer_group(connection, group.group_id)
    return known | _classic_group(connection, group.group_id)


def _classic_group(connection: WireConnection, group_id: str) -> Known:
    request = DescribeGroupsRequest(groups=[group_id])
    (group,) = connection.call(request, DESCRIBE_GROUPS, DescribeGroupsResponse).groups
    assert group.error_code == 0, group
    return {
        "protocol": group.protocol_data,
        "members": {
            member.member_id: {
                "instance": member.group_instance_id,
                "client": member.client_id,
                "host": member.client_host,
                "metadata": member.member_metadata.decode("latin-1"),
                "assignment": member.member_assignment.decode("latin-1"),
            }
            for member in group.members
        },
    }


def _consumer_group(connection: WireConnection, group_id: str) -> Known:
    request = ConsumerGroupDescribeRequest(group_ids=[group_id])
    (group,) = connection.call(request, DESCRIBE_CONSUMER_GROUPS, ConsumerGroupDescribeResponse).groups
    assert group.error_code == 0, group
    return {
        "epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor": group.assignor_name,
        "members": {
            member.member_id: {
                "instance": member.instance_id,
                "epoch": member.member_epoch,
                "client": member.client_id,
                "host": member.client_host,
                "topics": sorted(member.subscribed_topic_names),
                "regex": member.subscribed_topic_regex,
                "assignment": _partitions(member.assignment),
                "target": _partitions(member.target_assignment),
                "type": member.member_type,
            }
            for member in group.members
        },
    }


def _partitions(assignment: Assignment) -> dict[str, list[int]]:
    return {topic.topic_name: sorted(topic.partitions) for topic in assignment.topic_partitions}


def _offsets(connection: WireConnection, group_id: str) -> Known:
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)])
    (group,) = connection.call(request, FETCH_OFFSETS, OffsetFetchResponse).groups
    assert group.error_code == 0, group
    return {
        f"{topic.name}-{partition.partition_index}": [
            partition.committed_offset,
            partition.committed_leader_epoch,
            partition.metadata,
        ]
        for topic in group.topics
        for partition in topic.partitions
    }


def _transactions(connection: WireConnection) -> Known:
    listed = connection.call(ListTransactionsRequest(), LIST_TRANSACTIONS, ListTransactionsResponse)
    ids = [state.transactional_id for state in listed.transaction_states]
    request = DescribeTransactionsRequest(transactional_ids=ids)
    described = connection.call(request, DESCRIBE_TRANSACTIONS, DescribeTransactionsResponse)
    return {
        state.transactional_id: {
            "state": state.transaction_state,
            "timeout_ms": state.transaction_timeout_ms,
            "start_ms": state.transaction_start_time_ms,
            "producer": [state.producer_id, state.producer_epoch],
            "partitions": {topic.topic: sorted(topic.partitions) for topic in state.topics},
        }
        for state in described.transaction_states
    }

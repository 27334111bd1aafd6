"""ListGroups: the groups of a shard, in the states and of the types that are asked for."""

from collections.abc import Sequence

from quire.coordinators.group.group import Groups
from quire.protocol.messages.list_groups import ListedGroup


def list_groups(groups: Groups, states: Sequence[str], types: Sequence[str]) -> list[ListedGroup]:
    """An empty filter lets everything pass, one with unknown words nothing; case does not matter."""
    asked_states = [state.lower() for state in states]
    asked_types = [each.lower() for each in types]
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type,
            group_state=group.state_name,
            group_type=group.type.value,
        )
        for group in groups.values()
        if (not asked_states or group.state_name.lower() in asked_states)
        and (not asked_types or group.type.value in asked_types)
    ]

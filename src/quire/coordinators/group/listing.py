"""ListGroups: the groups of a shard, filtered by state and type."""

from collections.abc import Sequence

from quire.coordinators.group.group import Groups
from quire.protocol.messages.list_groups import ListedGroup


def list_groups(groups: Groups, states: Sequence[str], types: Sequence[str]) -> list[ListedGroup]:
    """An empty filter matches all groups. An unknown state or type matches none. Case is ignored."""
    wanted_states = [state.lower() for state in states]
    wanted_types = [each.lower() for each in types]
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type,
            group_state=group.state_name,
            group_type=group.type.value,
        )
        for group in groups.values()
        if (not wanted_states or group.state_name.lower() in wanted_states)
        and (not wanted_types or group.type.value in wanted_types)
    ]

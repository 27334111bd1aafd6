"""ListGroups: its filters."""

from collections.abc import Sequence

import pytest

from quire.coordinators.group.group import Groups, GroupType
from quire.coordinators.group.listing import list_groups
from quire.protocol.messages.list_groups import ListedGroup
from tests.coordinators.group.offsets.offsets_shard import ScriptedGroup


def groups() -> Groups:
    empty, stable, modern = (ScriptedGroup(group_id) for group_id in ("empty", "stable", "modern"))
    stable.join("m", 1)
    modern.join("m", 1)
    modern.type = GroupType.CONSUMER
    return Groups({group.group_id: group for group in (empty, stable, modern)})


def test_a_group_is_listed_with_its_state_and_type() -> None:
    assert list_groups(groups(), [], [])[1] == ListedGroup(
        group_id="stable", protocol_type="consumer", group_state="Stable", group_type="classic"
    )


@pytest.mark.parametrize(
    ("states", "types", "listed"),
    [
        ([], [], ["empty", "stable", "modern"]),
        (["Stable"], [], ["stable", "modern"]),
        (["sTABLE", "empty"], [], ["empty", "stable", "modern"]),
        ([], ["consumer"], ["modern"]),
        ([], ["Classic", "share"], ["empty", "stable"]),
        (["Stable"], ["classic"], ["stable"]),
        (["no such state"], [], []),
        ([], ["no such type"], []),
    ],
)
def test_filters_ignore_case(states: Sequence[str], types: Sequence[str], listed: list[str]) -> None:
    assert [group.group_id for group in list_groups(groups(), states, types)] == listed

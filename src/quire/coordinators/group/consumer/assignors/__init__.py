"""Assignors: pure functions that compute the target assignment of a group from its subscriptions.

`uniform` gives all members the same number of partitions, `range` gives each member a range of each topic. Both start
from the current target and move as few partitions as possible. The same input always has the same result.
"""

from quire.coordinators.group.consumer.assignors.assignor import AssignedMember, Assignment, Assignor
from quire.coordinators.group.consumer.assignors.range_assignor import ranges_in_turns
from quire.coordinators.group.consumer.assignors.uniform_assignor import uniform_in_turns

ASSIGNORS: dict[str, Assignor] = {"uniform": uniform_in_turns, "range": ranges_in_turns}
"""By the names in group.consumer.assignors."""

__all__ = ["ASSIGNORS", "AssignedMember", "Assignment", "Assignor"]

"""Who should have which partition: pure functions from a group's subscriptions to its target assignment.

`uniform` gives every member as many partitions as the others, `range_` gives every member a range of each topic. Both
start from what members have now and move as little as they can, and give the same answer to the same question.
"""

from quire.coordinators.group.consumer.assignors.assignor import AssignedMember, Assignment, Assignor
from quire.coordinators.group.consumer.assignors.range_assignor import ranges_in_turns
from quire.coordinators.group.consumer.assignors.uniform_assignor import uniform_in_turns

ASSIGNORS: dict[str, Assignor] = {"uniform": uniform_in_turns, "range": ranges_in_turns}
"""By the names of group.consumer.assignors."""

__all__ = ["ASSIGNORS", "AssignedMember", "Assignment", "Assignor"]

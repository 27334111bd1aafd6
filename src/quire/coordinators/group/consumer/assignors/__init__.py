"""Who should have which partition: pure functions from a group's subscriptions to its target assignment.

`uniform` gives every member as many partitions as the others, `range_` gives every member a range of each topic. Both
start from what members have now and move as little as they can, and give the same answer to the same question.
"""

from quire.coordinators.group.consumer.assignors.assignor import AssignedMember, Assignment, Assignor
from quire.coordinators.group.consumer.assignors.range_assignor import assign_ranges
from quire.coordinators.group.consumer.assignors.uniform_assignor import assign_uniformly

ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}
"""By the names of group.consumer.assignors."""

__all__ = ["ASSIGNORS", "AssignedMember", "Assignment", "Assignor"]

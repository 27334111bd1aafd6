"""A group shard with the topics t and u."""

from tests.coordinators.group.group_shard import GroupShard
from tests.coordinators.group.offsets.offsets_shard import topics


def shard_of(**settings: str) -> GroupShard:
    return GroupShard(topics({"t": 1, "u": 1}), {name.replace("_", "."): value for name, value in settings.items()})

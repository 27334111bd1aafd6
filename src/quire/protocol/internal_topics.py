"""The names of the topics in which a cluster keeps its own state."""

GROUP_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"

CLUSTER_METADATA = "__cluster_metadata"
"""The metadata log. Clients do not see it as a topic."""


def is_internal(topic: str) -> bool:
    """Whether a coordinator keeps its state in this topic; clients may read it, but not create it or write to it."""
    return topic in (GROUP_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE)

"""The names of topics that clusters keep their own state in."""

GROUP_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"

CLUSTER_METADATA = "__cluster_metadata"
"""The metadata log. No client sees it as a topic."""


def is_internal(topic: str) -> bool:
    """Whether a coordinator keeps its state there; clients may read but not create or write it."""
    return topic in (GROUP_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE)

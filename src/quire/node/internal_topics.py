"""The topics in which the coordinators keep their state; clients may read but not create or write them."""

GROUP_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
CLUSTER_METADATA = "__cluster_metadata"


def is_internal(topic: str) -> bool:
    return topic in (GROUP_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE)

"""Which offsets a member of a consumer group may commit and fetch: by its epoch, and since KIP-1251 by partition.

A member that does not know its current epoch yet is not at fault. It may commit offsets of a partition with an older
epoch if it has owned the partition since that epoch. For other partitions, a later owner may have committed already.
"""

from quire.coordinators.group.consumer.member import Member
from quire.coordinators.group.group import CheckPartition
from quire.protocol.errors import ApiError, ErrorCode


def check_commit(member: Member, epoch: int, knows_epochs: bool) -> CheckPartition | None:
    """`knows_epochs`: whether the client knows the errors of this protocol."""
    if not knows_epochs and not member.is_classic:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the consumer group protocol.",
        )
    newest = member.current.member_epoch
    if epoch == newest:
        return None
    if epoch > newest:
        raise _stale(member, f"The received member epoch {epoch} is newer than the member epoch {newest}.")

    def check_partition(topic_id: bytes, partition: int) -> None:
        since = member.current.epoch_of(topic_id, partition)
        if since is None:
            raise _stale(
                member,
                f"The received member epoch {epoch} is older than the member epoch {newest}, "
                f"and partition {partition} is no longer assigned to the member.",
            )
        if epoch < since:
            raise _stale(
                member,
                f"The received member epoch {epoch} is older than the epoch {since} in which partition {partition} "
                "was assigned to the member.",
            )

    return check_partition


def check_epoch(member: Member, epoch: int) -> None:
    newest = member.current.member_epoch
    if epoch != newest:
        raise _stale(member, f"The received member epoch {epoch} does not match the expected member epoch {newest}.")


def _stale(member: Member, message: str) -> ApiError:
    return ApiError(ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH, message)

"""Member ids: the name of the client, as far as it fits, and a UUID."""

from quire.coordinators.group.classic.member_id import LONGEST_NAME
from quire.protocol.errors import ErrorCode
from tests.coordinators.group.classic.asking import beat, group_of, join, shard_at_once, stable


def test_member_ids_begin_with_what_the_client_is_called() -> None:
    shard = shard_at_once()
    assert join(shard, version=4).value.member_id.startswith("client-")
    join(shard, instance_id="one", version=5)
    (static,) = group_of(shard).members
    assert static.startswith("one-") and len(static) == len("one-") + 36


def test_a_member_with_a_very_long_name_has_an_id_that_fits_into_answers_and_records() -> None:
    shard = shard_at_once()
    (member_id,) = stable(shard, instance_id="\N{GRINNING FACE}" * 8_191, version=9)
    assert len(member_id.encode()) < 0x8000
    shard.reload()
    assert beat(shard, member_id, 1).value.error_code == ErrorCode.NONE


def test_a_member_id_has_no_more_than_the_beginning_of_a_long_client_id() -> None:
    shard = shard_at_once()
    given = join(shard, version=4, client_id="c" * 30_000).value.member_id
    assert given.startswith("c" * LONGEST_NAME + "-") and len(given) == LONGEST_NAME + 1 + 36

"""What may move to another directory is decided before anything moves."""

import pytest

from quire.cli.disks.plan import make_plan, size_text
from quire.client.admin.cluster import LogDir, ReplicaSize
from quire.client.offsets import TopicPartition
from quire.console.failure import EXIT_NOT_FOUND, Failure
from quire.protocol.errors import ApiError, ErrorCode

ONE = LogDir("/one", None, 1000, 500, [ReplicaSize("a", 0, 100, 0), ReplicaSize("b", 1, 200, 0)])
TWO = LogDir("/two", None, 1000, 500, [ReplicaSize("c", 0, 50, 0), ReplicaSize("a", 0, 10, 9, is_future=True)])
BROKEN = LogDir("/three", ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "offline"), -1, -1, [])
ALL = [ONE, TWO, BROKEN]

A, B, C = TopicPartition("a", 0), TopicPartition("b", 1), TopicPartition("c", 0)


def test_named_replicas_move_unless_they_are_there() -> None:
    plan = make_plan(1, ALL, [A, C, A], None, "/two/")
    assert (plan.target, [each.topic for each in plan.replicas], plan.size_bytes) == ("/two", ["a"], 100)
    assert plan.seconds(None) is None
    assert plan.seconds(50) == 2


def test_everything_in_a_directory_moves() -> None:
    assert [each.topic for each in make_plan(1, ALL, [], "/one", "/two").replicas] == ["a", "b"]
    assert make_plan(1, ALL, [C], None, "/two").replicas == ()


@pytest.mark.parametrize(
    ("wanted", "source", "target", "sentence", "code"),
    [
        ([A], None, "/four", "broker 1 has no data directory /four; it has /one, /two, /three.", EXIT_NOT_FOUND),
        ([], "/four", "/two", "broker 1 has no data directory /four", EXIT_NOT_FOUND),
        ([A], None, "/three", "/three on broker 1 is offline", 1),
        ([], "/three", "/one", "/three on broker 1 is offline", 1),
        ([], "/one", "/one/", "--from and --to are both /one.", 1),
        ([TopicPartition("a", 7)], None, "/two", "broker 1 has no replica of a-7.", EXIT_NOT_FOUND),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    wanted: list[TopicPartition], source: str | None, target: str, sentence: str, code: int
) -> None:
    with pytest.raises(Failure) as caught:
        make_plan(1, ALL, wanted, source, target)
    assert caught.value.message.startswith(sentence)
    assert caught.value.exit_code == code


def test_a_disk_without_room_is_refused_and_a_part_of_it_stays_free() -> None:
    small = LogDir("/two", None, 1000, 349, [])
    with pytest.raises(Failure, match="/two on broker 1 has 299 bytes to spare, and 300 bytes are to move there"):
        make_plan(1, [ONE, small], [], "/one", "/two")
    enough = LogDir("/two", None, 1000, 350, [])
    assert make_plan(1, [ONE, enough], [], "/one", "/two").size_bytes == 300
    unknown = LogDir("/two", None, -1, -1, [])
    assert make_plan(1, [ONE, unknown], [], "/one", "/two").size_bytes == 300


def test_sizes_are_short() -> None:
    assert [size_text(size) for size in (0, 1023, 1536, 5 << 20, 3 << 40)] == [
        "0 bytes",
        "1023 bytes",
        "1.5 KiB",
        "5.0 MiB",
        "3072.0 GiB",
    ]

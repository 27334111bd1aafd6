"""The verdict finds each kind of fault, so that a crash test can fail."""

from pathlib import Path

import pytest

from tests.crash.verdict import Verdict, missing, out_of_order, repeated, replicas_differ

STORED = {(0, 0): b"a", (0, 1): b"b", (0, 2): b"c", (1, 0): b"d"}


def test_a_record_that_is_gone_or_has_moved_is_missing() -> None:
    assert missing(STORED, STORED) == 0
    assert missing({(0, 0): b"a", (0, 1): b"c", (1, 1): b"d"}, STORED) == 2


def test_a_value_counts_as_repeated_from_its_second_time_on() -> None:
    assert repeated([b"a", b"b"]) == 0
    assert repeated([b"a", b"b", b"a", b"a", b"b"]) == 3


def test_order_is_compared_within_each_partition_and_without_records_of_others() -> None:
    assert out_of_order([[b"a", b"x", b"c"], [b"d"]], STORED) == 0
    assert out_of_order([[b"c", b"a", b"b"], [b"d"]], STORED) == 1


@pytest.mark.parametrize("fault", ["lost", "duplicated", "out_of_order", "aborted_read", "vanished"])
def test_every_count_must_be_zero(fault: str) -> None:
    clean = {"acknowledged": 5, "lost": 0, "duplicated": 0, "out_of_order": 0, "aborted_read": 0, "vanished": 0}
    Verdict(**clean).assert_clean()
    with pytest.raises(AssertionError, match=f"{fault.replace('_', ' ')} 1"):
        Verdict(**clean | {fault: 1}).assert_clean()


def test_a_load_without_acknowledgements_tests_nothing() -> None:
    with pytest.raises(AssertionError, match="nothing was tested"):
        Verdict(acknowledged=0, lost=0).assert_clean()


def test_a_count_that_a_test_cannot_make_is_not_said() -> None:
    assert str(Verdict(acknowledged=5, lost=0, aborted_read=0)) == "acknowledged 5, lost 0, aborted read 0"


def test_replicas_differ_if_one_byte_does(tmp_path: Path) -> None:
    for node, log in (("1", b"records"), ("2", b"records"), ("3", b"recordz")):
        folder = tmp_path / node / "t-0"
        folder.mkdir(parents=True)
        (folder / "00000000000000000000.log").write_bytes(log)
    assert replicas_differ([tmp_path / "1", tmp_path / "2"], "t", 1) == ""
    assert replicas_differ([tmp_path / "1", tmp_path / "3"], "t", 1).startswith("the replicas of partition 0 differ")

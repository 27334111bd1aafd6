import pytest

from quire.coordinators.runtime.partitioning import java_hash, partition_for


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(1 << 31)),
        ("café", 3045921),
        ("\N{GRINNING FACE}", 1772899),
    ],
)
def test_names_hash_as_in_java(text: str, number: int) -> None:
    assert java_hash(text) == number


def test_the_lowest_hash_has_no_counterpart_and_goes_to_the_first_partition() -> None:
    assert partition_for("polygenelubricants", 50) == 0

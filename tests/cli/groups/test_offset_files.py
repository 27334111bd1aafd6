import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.cli.groups.offset_files import format_offsets, parse_offsets
from quire.client.offsets import TopicPartition
from quire.console.failure import EXIT_USAGE, Failure

NAMES = st.text("abcXYZ019._-", min_size=1, max_size=20)
OFFSETS = st.dictionaries(
    st.builds(TopicPartition, NAMES, st.integers(0, 2**31 - 1)), st.integers(0, 2**63 - 1), min_size=1
)


@given(OFFSETS)
def test_written_offsets_are_read_back(offsets: dict[TopicPartition, int]) -> None:
    assert parse_offsets(format_offsets(offsets).splitlines(), "g") == offsets


def test_lines_of_other_groups_headings_and_empty_lines_are_passed_over() -> None:
    lines = ['"group","topic","partition","offset"', '"g","orders",0,5', "", "h,orders,1,6", "g, users, 2, 7"]
    assert parse_offsets(lines, "g") == {TopicPartition("orders", 0): 5, TopicPartition("users", 2): 7}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["orders,0,1", "orders,0"], "line 2"),
        (["orders,first,1"], "line 1"),
        (["orders,0,-1"], "line 1"),
        (["a,b,orders,0,1"], "line 1"),
        ([], "no line for group g"),
        (["h,orders,0,1"], "no line for group g"),
    ],
)
def test_errors_name_what_was_not_understood(lines: list[str], words: str) -> None:
    with pytest.raises(Failure) as caught:
        parse_offsets(lines, "g")
    assert caught.value.exit_code == EXIT_USAGE
    assert words in caught.value.message
    assert caught.value.message.endswith(".")

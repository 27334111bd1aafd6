import pytest

from quire.cli.node.control import UnknownControlError, carry_out
from quire.node.faults import Faults
from quire.protocol.apis import api_key
from quire.protocol.errors import ErrorCode


def test_failures_delays_and_their_end_are_understood() -> None:
    faults = Faults()
    carry_out(faults, "fail_next Produce NOT_LEADER_OR_FOLLOWER 2")
    carry_out(faults, "delay Fetch 50")
    produce, fetch = api_key("Produce"), api_key("Fetch")
    assert faults.next_failure(produce) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert faults.delay_ms(fetch) == 50
    carry_out(faults, "clear")
    assert faults.next_failure(produce) == ErrorCode.NONE
    assert faults.delay_ms(fetch) == 0


@pytest.mark.parametrize(
    "line",
    ["", "fail_next", "fail_next Produce NO_SUCH_ERROR 1", "fail_next Nothing NONE 1", "delay Fetch soon", "stop now"],
)
def test_an_invalid_control_line_changes_nothing_and_is_reported(line: str) -> None:
    with pytest.raises(UnknownControlError):
        carry_out(Faults(), line)


def test_errors_name_the_wrong_part_and_suggest_a_similar_name() -> None:
    with pytest.raises(UnknownControlError, match=r"^there is no API 'produce'; did you mean Produce\?$"):
        carry_out(Faults(), "fail_next produce NOT_LEADER_OR_FOLLOWER 1")
    with pytest.raises(UnknownControlError, match=r"^there is no error 'NOT_LEADER'"):
        carry_out(Faults(), "fail_next Produce NOT_LEADER 1")

"""Answers with an entry for each name: each name once, and no more than fits."""

import pytest

from quire.node import entries as entries_module
from quire.node.entries import entries
from quire.node.slices import Slices, Work
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsResponse
from simulator.clock import SimClock


def described(group_id: str, state: str = "Stable") -> DescribedGroup:
    return DescribedGroup(group_id=group_id, group_state=state)


def refused(group_id: str, error: ApiError) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error.code)


def run(work: Work[list[DescribedGroup]]) -> list[DescribedGroup]:
    result = Slices(SimClock()).run(work)
    assert isinstance(result, list)
    return result


def response_with(groups: list[DescribedGroup]) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=groups)


def test_each_name_has_one_entry_in_the_order_asked_for() -> None:
    asked: list[str] = []

    def describe(group_id: str) -> DescribedGroup:
        asked.append(group_id)
        return described(group_id)

    found = run(entries(["b", "a", "b", "c", "b"], describe, refused, response_with, 5))
    assert [group.group_id for group in found] == asked == ["b", "a", "c"]


def test_entries_that_come_later_or_in_slices_are_waited_for() -> None:
    late: Pending[DescribedGroup] = Pending()

    def in_slices() -> Work[DescribedGroup]:
        yield None
        return described("c")

    answers = {"a": described("a"), "b": late, "c": in_slices()}
    result = Slices(SimClock()).run(entries(answers, lambda name: answers[name], refused, response_with, 5))
    assert isinstance(result, Pending)
    late.complete(described("b"))
    assert not isinstance(result.value, ApiError)
    assert [group.group_id for group in result.value] == ["a", "b", "c"]


def test_entries_that_do_not_fit_are_refused_and_not_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries_module, "ENTRIES_BYTES_MAX", 1_000)
    asked: list[str] = []

    def describe(group_id: str) -> DescribedGroup:
        asked.append(group_id)
        return described(group_id, "x" * 400)

    found = run(entries("abcdefgh", describe, refused, response_with, 5))
    assert [group.error_code for group in found] == [0, 0, *[ErrorCode.INVALID_REQUEST] * 6]
    assert asked == ["a", "b", "c"], "the third was too large; the others were not even looked for"


def test_the_first_entry_is_given_however_large_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries_module, "ENTRIES_BYTES_MAX", 100)
    found = run(entries("ab", lambda name: described(name, "x" * 400), refused, response_with, 5))
    assert [group.error_code for group in found] == [0, ErrorCode.INVALID_REQUEST]

"""Listing transactional ids by a regular expression."""

import pytest

from quire.coordinators.transaction.id_pattern import by_pattern
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.list_transactions import TransactionState

IDS = ["orders-1", "orders-eu/2", "Zahlung: Köln", "app_v2-uuid-1", "", "zwei\nZeilen"]
LISTED = [TransactionState(transactional_id=each) for each in IDS]


def chosen(listed: list[TransactionState], pattern: str | None) -> list[TransactionState]:
    steps = by_pattern(listed, pattern)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: list[TransactionState] = end.value
            return found


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (None, IDS),
        ("", IDS),
        ("orders", []),
        ("orders-.*", ["orders-1", "orders-eu/2"]),
        ("orders-[^/]*", ["orders-1"]),
        (".*/\\d", ["orders-eu/2"]),
        ("(?i)ZAHLUNG:\\sKÖLN", ["Zahlung: Köln"]),
        ("\\pL+:\\s\\p{L}+", ["Zahlung: Köln"]),
        ("\\w+-uuid-\\w", ["app_v2-uuid-1"]),
        ("zwei.*", []),
        ("zwei[^a]Zeilen", ["zwei\nZeilen"]),
        ("x*", [""]),
    ],
)
def test_the_whole_id_matches_or_not_at_all(pattern: str | None, expected: list[str]) -> None:
    assert [each.transactional_id for each in chosen(LISTED, pattern)] == expected


def test_an_invalid_regular_expression_is_refused() -> None:
    with pytest.raises(ApiError, match="missing closing") as refused:
        chosen(LISTED, "orders-(")
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a*)*b", "(a|a)*c", "(.*)*x"])
def test_no_expression_makes_the_node_wait(pattern: str) -> None:
    assert chosen([TransactionState(transactional_id="a" * 2_000 + "!")], pattern) == []


def test_an_expression_that_would_take_too_long_is_refused() -> None:
    listed = [TransactionState(transactional_id=bin(number)[2:] * 40) for number in range(2_000)]
    with pytest.raises(ApiError, match="takes too long") as refused:
        chosen(listed, "(0|1)*1(0|1){500}")
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION

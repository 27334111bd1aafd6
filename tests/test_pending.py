"""A pending result: completed once, observed once, or abandoned."""

import pytest

from quire.pending import Pending


def test_a_callback_gets_the_result_whether_it_came_before_or_after() -> None:
    seen: list[int] = []
    early: Pending[int] = Pending()
    early.when_done(seen.append)
    early.complete(1)
    late: Pending[int] = Pending()
    late.complete(2)
    late.when_done(seen.append)
    assert seen == [1, 2]
    assert late.done and late.value == 2


def test_completing_twice_is_a_bug_unless_it_is_a_race() -> None:
    pending: Pending[int] = Pending()
    assert pending.complete_once(1)
    assert not pending.complete_once(2)
    with pytest.raises(AssertionError, match="twice"):
        pending.complete(3)
    assert pending.value == 1


def test_an_abandoned_result_gives_back_what_waited_for_it_and_ignores_completion() -> None:
    given_back: list[str] = []
    seen: list[int] = []
    pending: Pending[int] = Pending(on_abandoned=lambda: given_back.append("timer"))
    pending.when_done(seen.append)
    pending.abandon()
    pending.abandon()
    pending.complete(1)
    assert not pending.complete_once(2)
    assert given_back == ["timer"]
    assert seen == []


def test_then_changes_the_result_and_passes_abandoning_on() -> None:
    given_back: list[str] = []
    first: Pending[int] = Pending(on_abandoned=lambda: given_back.append("first"))
    first.then(lambda value: value).abandon()
    assert given_back == ["first"]
    second: Pending[int] = Pending()
    text = second.then(str)
    second.complete(7)
    assert text.value == "7"

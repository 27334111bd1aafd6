import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quire.cli.records.filters import Condition, InvalidConditionError, build_filter, parse_condition
from quire.protocol.records import Record

ORDER = {
    "id": 17,
    "total": 99.5,
    "paid": True,
    "note": None,
    "status": "done",
    "at": "2026-01-31T12:00:00Z",
    "customer": {"name": "Ada", "country": "CH"},
    "tags": ["red", "blue", 7],
    "items": [{"sku": "A7"}, {"sku": "B8"}],
    "a.b": 1,
}


@pytest.mark.parametrize(
    "text",
    [
        "id=17",
        "id = 17",
        "id=17.0",
        "total>99",
        "total>=99.5",
        "total<100",
        "total<=99.5",
        "id!=18",
        "paid=true",
        "note=null",
        "status=done",
        "status!=open",
        "customer.country=CH",
        "items.1.sku=B8",
        "tags contains red",
        "tags contains 7",
        "tags.0=red",
        "customer contains name",
        "customer.name contains d",
        "at>2026-01-01",
        "at<2027",
        'tags=["red", "blue", 7]',
    ],
)
def test_conditions_that_hold(text: str) -> None:
    assert parse_condition(text).holds(ORDER)


@pytest.mark.parametrize(
    "text",
    [
        "id=18",
        "id>17",
        "id=abc",
        "id>abc",
        "paid=True",
        "paid>0",
        "status=don",
        "status contains x",
        "customer=Ada",
        "items.2.sku=A7",
        "items.x.sku=A7",
        "missing=1",
        "missing!=1",
        "note.x=1",
        "tags contains green",
        "id contains 1",
        "a.b=1",
    ],
)
def test_conditions_that_do_not_hold(text: str) -> None:
    assert not parse_condition(text).holds(ORDER)


def test_the_value_may_hold_anything_signs_included() -> None:
    assert parse_condition("url=http://x/?a=b>c") == Condition(("url",), "=", "http://x/?a=b>c")
    assert parse_condition("empty=") == Condition(("empty",), "=", "")
    assert parse_condition("text contains a contains b").value == "a contains b"


@pytest.mark.parametrize("text", ["", "id", "=1", "a..b=1", ".a=1", "contains x", "__import__('os')"])
def test_an_invalid_condition_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidConditionError, match="as in user"):
        parse_condition(text)


@settings(deadline=None)
@given(
    st.text(max_size=40), st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=4)
)
def test_no_text_and_no_document_make_it_fail(text: str, document: object) -> None:
    try:
        condition = parse_condition(text)
    except InvalidConditionError:
        return
    assert condition.holds({"x": document}) in (True, False)


def record(
    value: object = None, key: bytes | None = None, headers: list[tuple[str, bytes | None]] | None = None
) -> Record:
    return Record(value=None if value is None else json.dumps(value).encode(), key=key, headers=headers)


def test_without_conditions_there_is_no_filter_to_run() -> None:
    assert build_filter([], [], []) is None


def test_any_one_of_several_keys_is_enough() -> None:
    wanted = build_filter(["a", "b"], [], [])
    assert wanted is not None
    assert wanted(record(key=b"a")) and wanted(record(key=b"b"))
    assert not wanted(record(key=b"c")) and not wanted(record(key=None))


def test_a_header_is_asked_for_by_name_or_by_name_and_value() -> None:
    by_name, by_value = build_filter([], ["h"], []), build_filter([], ["h=x=y"], [])
    assert by_name is not None and by_value is not None
    assert by_name(record(headers=[("h", None)]))
    assert by_value(record(headers=[("g", b"1"), ("h", b"x=y")]))
    assert not by_value(record(headers=[("h", b"other")]))
    assert not by_name(record())


def test_all_kinds_of_conditions_must_hold_together() -> None:
    wanted = build_filter(["k"], ["h"], [parse_condition("a=1"), parse_condition("b=2")])
    assert wanted is not None
    assert wanted(record({"a": 1, "b": 2}, b"k", [("h", b"")]))
    assert not wanted(record({"a": 1, "b": 3}, b"k", [("h", b"")]))
    assert not wanted(record({"a": 1, "b": 2}, b"k"))


@pytest.mark.parametrize("value", [None, b"", b"not json", b"\xff\xfe", b"[1,2", b"7"])
def test_values_that_are_not_json_objects_match_nothing(value: bytes | None) -> None:
    wanted = build_filter([], [], [parse_condition("a=1")])
    assert wanted is not None
    assert not wanted(Record(value=value))


@pytest.mark.parametrize("text", ["total>>5", "status==done", "total=>5", "total=<5", "total<>5", "a!==b", "a= =b"])
def test_a_comparison_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(InvalidConditionError, match="the comparisons are"):
        parse_condition(text)


def test_the_text_to_search_for_may_begin_with_any_character() -> None:
    assert parse_condition("text contains >=").value == ">="

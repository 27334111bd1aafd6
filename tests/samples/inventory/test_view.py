"""The contents of the view, and its responses."""

import pytest

from quire_samples.inventory.stock import OutOfOrderError
from quire_samples.inventory.view import View
from tests.samples.inventory.histories import TOPIC, fetched, history


def view_of(*changes: tuple[str, int]) -> View:
    view = View(TOPIC)
    view.begin({0: 0, 1: 0}, {0: len(changes), 1: 0})
    view.apply(fetched(history(*changes)))
    return view


def test_an_item_is_shown_as_of_its_last_event_with_the_offset() -> None:
    answer = view_of(("pen", 5), ("ink", 2), ("pen", -3)).answer("/items/pen")
    assert answer == (
        200,
        {
            "item": "pen",
            "level": 2,
            "sequence": 2,
            "changed_by": "c-2",
            "changed_at_ms": 2,
            "topic": TOPIC,
            "offsets": {"0": 3, "1": 0},
        },
    )


def test_all_items_come_in_the_order_of_their_names() -> None:
    status, content = view_of(("pen", 5), ("ink", 2), ("pen", -3)).answer("/items")
    items = content["items"]
    assert isinstance(items, list)
    assert status == 200
    assert [(item["item"], item["level"]) for item in items] == [("ink", 2), ("pen", 2)]
    assert (content["count"], content["offsets"]) == (2, {"0": 3, "1": 0})


def test_a_name_may_have_any_characters() -> None:
    view = view_of(("red pen/large é?", 5))
    assert view.answer("/items/red%20pen%2Flarge%20%C3%A9%3F").content["level"] == 5


@pytest.mark.parametrize("path", ["/items/quill", "/nothing", "/itemsandmore"])
def test_a_missing_item_is_404_with_a_sentence(path: str) -> None:
    status, content = view_of(("pen", 5)).answer(path)
    assert status == 404
    assert content["error"]


def test_it_is_not_healthy_before_it_has_read_up_to_where_the_topic_ended_when_it_began() -> None:
    view = View(TOPIC)
    events = history(("pen", 5), ("pen", 1))
    view.begin({0: 10}, {0: 12})
    assert (view.answer("/health").status, view.answer("/health").content["status"]) == (503, "rebuilding")
    assert view.answer("/health").content["lag"] == 2
    view.apply(fetched(events[:1], from_offset=10))
    assert view.answer("/health").status == 503
    view.apply(fetched(events[1:], from_offset=11))
    assert view.answer("/health") == (
        200,
        {"status": "ok", "items": 1, "lag": 0, "topic": TOPIC, "offsets": {"0": 12}},
    )


def test_it_stays_healthy_while_it_follows_and_says_how_far_it_is_behind() -> None:
    view = view_of(("pen", 5))
    view.note_ends({0: 7, 1: 1})
    assert (view.answer("/health").status, view.answer("/health").content["lag"]) == (200, 7)


def test_it_is_not_healthy_while_the_cluster_cannot_be_reached() -> None:
    view = view_of(("pen", 5))
    view.trouble = "nobody listens"
    assert view.answer("/health").status == 503
    assert view.answer("/health").content["trouble"] == "nobody listens"
    assert view.answer("/items/pen").status == 200
    view.note_ends({0: 1, 1: 0})
    assert view.answer("/health").status == 200


def test_an_out_of_order_event_is_not_taken_for_a_new_one() -> None:
    events = history(("pen", 5), ("pen", 1))
    view = View(TOPIC)
    view.apply(fetched(events))
    with pytest.raises(OutOfOrderError, match="event 1 of pen at offset 2, after event 2"):
        view.apply(fetched(events[:1], from_offset=2))

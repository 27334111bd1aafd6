"""Entries that a request names more than once."""

from quire.node.named_twice import named_twice


def test_only_what_is_named_more_than_once_is_found() -> None:
    assert named_twice([]) == frozenset()
    assert named_twice(["a", "b", "c"]) == frozenset()
    assert named_twice([("a", 0), ("a", 1), ("a", 0), ("b", 0), ("a", 0)]) == {("a", 0)}

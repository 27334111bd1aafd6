import click
import pytest

from quire.cli.scopes import Scope, ScopeType, by_topic, in_one_cell
from quire.client.offsets import TopicPartition


def parse(text: str) -> Scope:
    return ScopeType().convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("orders", Scope("orders", ())),
        ("orders:0", Scope("orders", (0,))),
        ("my.topic-1:3,0,3", Scope("my.topic-1", (3, 0))),
    ],
)
def test_a_topic_is_written_alone_or_with_partitions(text: str, scope: Scope) -> None:
    assert parse(text) == scope


@pytest.mark.parametrize("text", ["", ":0", "orders:", "orders:a", "orders:0,", "orders:-1", "orders:0:1", "orders:²"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse(text)


def test_a_scope_covers_its_partitions_and_no_others() -> None:
    assert parse("orders").covers(TopicPartition("orders", 7))
    assert parse("orders:7").covers(TopicPartition("orders", 7))
    assert not parse("orders:0,1").covers(TopicPartition("orders", 7))
    assert not parse("orders").covers(TopicPartition("users", 0))


@pytest.mark.parametrize("text", ["orders", "orders:0,3"])
def test_it_is_shown_as_it_is_written(text: str) -> None:
    assert str(parse(text)) == text


def test_partitions_of_several_topics_share_one_cell() -> None:
    partitions = [TopicPartition("orders", 0), TopicPartition("orders", 2), TopicPartition("users", 1)]
    assert by_topic(partitions) == {"orders": [0, 2], "users": [1]}
    assert in_one_cell(partitions) == "orders:0,2 users:1"
    assert in_one_cell([]) == "-"

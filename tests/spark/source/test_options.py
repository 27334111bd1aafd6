"""The table of options: which ones are accepted, and the messages for those that are refused."""

import pickle

import pytest

from pyspark_quire.errors import OptionError
from pyspark_quire.options import (
    FAIL_ON_DATA_LOSS,
    GROUP_ID,
    MIN_PARTITIONS,
    SERVERS,
    STARTING_OFFSETS,
    SUBSCRIBE,
    TABLE,
    WITHOUT_EFFECT,
    Options,
    Use,
)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("subscribeTo", "subscribe"),
        ("startingOffset", "startingOffsets"),
        ("kafka.bootstrap.server", "kafka.bootstrap.servers"),
        ("minpartition", "minPartitions"),
        ("kafka.isolation", "kafka.isolation.level"),
        ("failondataloos", "failOnDataLoss"),
    ],
)
def test_an_unknown_option_is_named_with_the_nearest_right_one(wrong: str, right: str) -> None:
    with pytest.raises(OptionError, match=f"^there is no option {wrong}; did you mean {right}\\?$"):
        Options({wrong: "1"}, Use.BATCH_READ)


def test_the_nearest_one_is_always_one_for_the_same_use() -> None:
    with pytest.raises(OptionError, match=r"did you mean startingOffsets\?"):
        Options({"endingOffset": "latest"}, Use.STREAM_READ)


def test_an_option_for_something_else_is_refused() -> None:
    with pytest.raises(OptionError, match="endingOffsets is for reading a batch, not for reading a stream"):
        Options({"endingoffsets": "latest"}, Use.STREAM_READ)


def test_a_batch_job_may_bring_its_group_along() -> None:
    assert Options({"kafka.group.id": "mine", "groupidprefix": "our"}, Use.BATCH_READ)[GROUP_ID] == "mine"


def test_an_unreadable_value_is_reported_with_what_is_allowed() -> None:
    with pytest.raises(OptionError, match=r"^option failOnDataLoss must be true or false, not 'perhaps'$"):
        Options({"failondataloss": "perhaps"}, Use.BATCH_READ)


def test_names_count_in_any_case_because_spark_lowers_them() -> None:
    options = Options({"MINPARTITIONS": "3", "startingoffsets": "earliest"}, Use.BATCH_READ)
    assert (options[MIN_PARTITIONS], options[STARTING_OFFSETS]) == (3, -2)


def test_defaults_hold_where_nothing_is_given() -> None:
    options = Options({}, Use.BATCH_READ)
    assert options[FAIL_ON_DATA_LOSS] is True
    assert options[SUBSCRIBE] is None
    assert SUBSCRIBE not in options


def test_a_missing_option_is_named() -> None:
    with pytest.raises(OptionError, match=r"^option kafka\.bootstrap\.servers is missing"):
        Options({}, Use.BATCH_READ).required(SERVERS)


def test_settings_of_the_java_client_that_mean_nothing_here_may_come_along() -> None:
    Options(dict.fromkeys(WITHOUT_EFFECT, "1"), Use.STREAM_READ)


def test_options_travel_to_the_tasks() -> None:
    options = pickle.loads(pickle.dumps(Options({"subscribe": "b,a"}, Use.BATCH_READ)))
    assert options[SUBSCRIBE] == ["a", "b"]


def test_no_name_is_in_the_table_twice() -> None:
    names = [option.name.lower() for option in TABLE]
    assert len(set(names)) == len(names)
    assert not set(names) & WITHOUT_EFFECT

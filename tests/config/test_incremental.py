"""Incremental changes: set, delete, append, subtract."""

import pytest

from quire.config.errors import ConfigError
from quire.config.incremental import Operation, changed_value
from quire.config.topic_keys import TOPIC_KEYS


@pytest.mark.parametrize(
    ("name", "operation", "value", "current", "after"),
    [
        ("segment.ms", Operation.SET, "5", None, "5"),
        ("segment.ms", Operation.SET, "5", "4", "5"),
        ("segment.ms", Operation.DELETE, None, "4", None),
        ("cleanup.policy", Operation.APPEND, "compact", None, "delete,compact"),
        ("cleanup.policy", Operation.APPEND, "compact", "compact", "compact"),
        ("cleanup.policy", Operation.APPEND, " compact ,delete", "", "compact,delete"),
        ("cleanup.policy", Operation.SUBTRACT, "delete", None, ""),
        ("cleanup.policy", Operation.SUBTRACT, "delete", "compact,delete", "compact"),
        ("cleanup.policy", Operation.SUBTRACT, "compact", "delete", "delete"),
    ],
)
def test_what_a_setting_is_afterwards(
    name: str, operation: Operation, value: str | None, current: str | None, after: str | None
) -> None:
    assert changed_value(TOPIC_KEYS, name, operation, value, current) == after


@pytest.mark.parametrize(
    ("name", "operation", "value", "words"),
    [
        ("segment.ms", Operation.APPEND, "5", "is not a list"),
        ("segment.ms", Operation.SET, None, "has no value"),
        ("segment.mss", Operation.DELETE, None, "perhaps segment.ms is meant"),
    ],
)
def test_what_cannot_be_changed_that_way(name: str, operation: Operation, value: str | None, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        changed_value(TOPIC_KEYS, name, operation, value, None)

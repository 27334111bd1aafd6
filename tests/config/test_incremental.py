"""Incremental changes: set, delete, append, subtract."""

import pytest

from quire.config.errors import ConfigError
from quire.config.incremental import changed_value
from quire.config.topic_keys import TOPIC_KEYS
from quire.protocol.alter_config_op import AlterConfigOp


@pytest.mark.parametrize(
    ("name", "operation", "value", "current", "after"),
    [
        ("segment.ms", AlterConfigOp.SET, "5", None, "5"),
        ("segment.ms", AlterConfigOp.SET, "5", "4", "5"),
        ("segment.ms", AlterConfigOp.DELETE, None, "4", None),
        ("cleanup.policy", AlterConfigOp.APPEND, "compact", None, "delete,compact"),
        ("cleanup.policy", AlterConfigOp.APPEND, "compact", "compact", "compact"),
        ("cleanup.policy", AlterConfigOp.APPEND, " compact ,delete", "", "compact,delete"),
        ("cleanup.policy", AlterConfigOp.SUBTRACT, "delete", None, ""),
        ("cleanup.policy", AlterConfigOp.SUBTRACT, "delete", "compact,delete", "compact"),
        ("cleanup.policy", AlterConfigOp.SUBTRACT, "compact", "delete", "delete"),
    ],
)
def test_the_value_of_a_setting_after_each_operation(
    name: str, operation: AlterConfigOp, value: str | None, current: str | None, after: str | None
) -> None:
    assert changed_value(TOPIC_KEYS, name, operation, value, current) == after


@pytest.mark.parametrize(
    ("name", "operation", "value", "words"),
    [
        ("segment.ms", AlterConfigOp.APPEND, "5", "is not a list"),
        ("segment.ms", AlterConfigOp.SET, None, "has no value"),
        ("segment.mss", AlterConfigOp.DELETE, None, "perhaps segment.ms is meant"),
    ],
)
def test_operations_that_do_not_apply_to_a_setting_are_refused(
    name: str, operation: AlterConfigOp, value: str | None, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        changed_value(TOPIC_KEYS, name, operation, value, None)

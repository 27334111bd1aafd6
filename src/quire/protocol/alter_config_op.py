"""The operations of IncrementalAlterConfigs (KIP-339), as the client sends them and the controller applies them."""

from enum import IntEnum


class AlterConfigOp(IntEnum):
    """APPEND and SUBTRACT are for settings that are lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3

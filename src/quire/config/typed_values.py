"""Reading settings by name and type, for the configuration of brokers and topics."""

from __future__ import annotations

from quire.config.allowed import Value


class TypedValues:
    """Reading is a dictionary look-up, so hot paths may do it every time. Reading the wrong type is a bug."""

    __slots__ = ("_values",)

    def __init__(self, values: dict[str, Value]) -> None:
        self._values = values

    def get(self, name: str) -> Value:
        return self._values[name]

    def get_int(self, name: str) -> int:
        value = self._values[name]
        assert type(value) is int, name
        return value

    def get_bool(self, name: str) -> bool:
        value = self._values[name]
        assert isinstance(value, bool), name
        return value

    def get_float(self, name: str) -> float:
        value = self._values[name]
        assert isinstance(value, int | float), name
        return value

    def get_str(self, name: str) -> str:
        value = self._values[name]
        assert isinstance(value, str), name
        return value

    def get_list(self, name: str) -> tuple[str, ...]:
        """The elements; empty if the setting is not set."""
        value = self._values[name]
        assert value is None or isinstance(value, tuple), name
        return value or ()

"""Builds the source of a Python function and its global names. The two compilers of the codec use it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    """The source of one function. `bind` gives an object a name that the source may use."""

    def __init__(self, **names: Any) -> None:
        self.names: dict[str, Any] = dict(names)
        self._lines: list[str] = []
        self._indent = 0
        self._count = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """`opening` is an `if`, `for`, `def`, ... without its colon. An empty block gets a `pass`."""
        self.line(opening + ":")
        self._indent += 1
        first = len(self._lines)
        yield
        if len(self._lines) == first:
            self.line("pass")
        self._indent -= 1

    def variable(self, prefix: str) -> str:
        """A new local name."""
        self._count += 1
        return f"{prefix}{self._count}"

    def bind(self, name: str, value: Any) -> str:
        """The first object of a name is kept: equal names mean equal objects, such as `pack_hi`."""
        self.names.setdefault(name, value)
        return name

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def function(self, name: str, title: str) -> Any:
        """Compiles the source and returns its function `name`; `title` appears in tracebacks."""
        exec(compile(self.text(), f"<{title}>", "exec"), self.names)
        return self.names[name]

"""Lines of Python under construction, with what their names mean. The two compilers of the codec write with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    """The text of one function. `bind` gives an object a name that the text may use."""

    def __init__(self, **names: Any) -> None:
        self.names: dict[str, Any] = dict(names)
        self._lines: list[str] = []
        self._indent = 0
        self._count = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """`opening` is an `if`, `for`, `def`, ... without its colon. A block that stays empty does nothing."""
        self.line(opening + ":")
        self._indent += 1
        first = len(self._lines)
        yield
        if len(self._lines) == first:
            self.line("pass")
        self._indent -= 1

    def variable(self, prefix: str) -> str:
        """A local name not used before."""
        self._count += 1
        return f"{prefix}{self._count}"

    def bind(self, name: str, value: Any) -> str:
        """The first object of that name stays: equal names stand for equal things, such as `pack_hi`."""
        self.names.setdefault(name, value)
        return name

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def function(self, name: str, title: str) -> Any:
        """Compiles the text and returns the function `name` that it defines; `title` stands in tracebacks."""
        exec(compile(self.text(), f"<{title}>", "exec"), self.names)
        return self.names[name]

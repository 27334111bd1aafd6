"""Splits chunks of bytes into lines, without their line ends (LF or CRLF)."""


class LineSplitter:
    """Keeps an incomplete line for the next chunk; at the end of input it is a line."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        lines = chunk.split(b"\n")
        if len(lines) > 1 and self._open:
            lines[0] = b"".join([*self._open, lines[0]])
            self._open.clear()
        rest = lines.pop()
        if rest:
            self._open.append(rest)
        if b"\r\n" in chunk or (lines and lines[0].endswith(b"\r")):
            return [line.removesuffix(b"\r") for line in lines]
        return lines

    def end(self) -> list[bytes]:
        rest = b"".join(self._open)
        self._open.clear()
        return [rest] if rest else []

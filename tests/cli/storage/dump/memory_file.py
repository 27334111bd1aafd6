"""A file in memory."""


class MemoryFile:
    def __init__(self, content: bytes, path: str = "orders-0/00000000000000000000.log") -> None:
        self.path = path
        self._content = bytes(content)

    def size(self) -> int:
        return len(self._content)

    def pread(self, size: int, position: int) -> bytes:
        return self._content[position : position + size]

    def pread_into(self, buffer: bytearray | memoryview, position: int) -> int:
        found = self.pread(len(buffer), position)
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        pass

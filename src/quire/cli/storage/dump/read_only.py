"""A file that is opened only for reading: it may belong to another user, or to a running node."""

import os


class ReadOnlyFile:
    """A `ReadableFile` of the operating system."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._number = os.open(path, os.O_RDONLY)

    def __enter__(self) -> "ReadOnlyFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def size(self) -> int:
        return os.fstat(self._number).st_size

    def pread(self, size: int, position: int) -> bytes:
        content = bytearray(size)
        return bytes(memoryview(content)[: self.pread_into(content, position)])

    def pread_into(self, buffer: bytearray | memoryview, position: int) -> int:
        view = memoryview(buffer)
        got = 0
        while got < len(view):
            more = os.preadv(self._number, [view[got:]], position + got)
            if more == 0:
                break
            got += more
        return got

    def close(self) -> None:
        os.close(self._number)

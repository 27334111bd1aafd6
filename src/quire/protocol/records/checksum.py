"""CRC-32C, the checksum of record batches, from the C extension of the crc32c package.

The package's `__init__` reads the metadata of the installed distributions to find its version, and loads a command
line, which takes tens of milliseconds. So the extension is loaded directly, and through the package if that fails.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

from quire.seams.disk import Buffer


def _load() -> Callable[[Buffer], int]:
    package = find_spec("crc32c")
    spec = package and PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if spec is None or spec.loader is None:
        from crc32c import crc32c as through_package

        return through_package
    extension = module_from_spec(spec)
    spec.loader.exec_module(extension)
    function: Callable[[Buffer], int] = extension.crc32c
    return function


crc32c = _load()

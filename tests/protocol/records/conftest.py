"""Tests that use `native` run twice: on the per-record loops as compiled, and on the same source interpreted."""

import shutil
from collections.abc import Iterator
from types import ModuleType

import pytest

from quire.protocol import records
from quire.protocol.records import (
    arrow_columns,
    arrow_native,
    builder,
    encode_native,
    reader,
    records_native,
    validator,
)
from tests.protocol.records.native_modules import installed_module, interpreted_module


@pytest.fixture(scope="module", params=["compiled", "interpreted"])
def native(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """The loops as one module, which the whole package uses while the test runs."""
    if request.param == "compiled":
        require_compiled()
        module = installed_module()
    else:
        module = interpreted_module()
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(reader, "decode", module.decode)
        patching.setattr(reader, "find_delta", module.find_timestamp)
        patching.setattr(reader, "find_highest_delta", module.find_highest)
        patching.setattr(validator, "scan", module.scan)
        patching.setattr(records, "check_plain", module.check_plain)
        patching.setattr(arrow_columns, "measure", module.measure)
        patching.setattr(arrow_columns, "fill", module.fill)
        patching.setattr(builder, "append_record", module.append_record)
        patching.setattr(builder, "append_records", module.append_records)
        yield module


def require_compiled() -> None:
    if all(module.COMPILED for module in (arrow_native, encode_native, records_native)):
        return
    if shutil.which("cc") or shutil.which("gcc") or shutil.which("clang"):
        pytest.fail("there is a C compiler but no compiled module: run `make setup`")
    pytest.skip("no C compiler here")

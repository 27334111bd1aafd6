"""Tests that use `native` run twice: on the loops of compaction as compiled, and on the same sources interpreted."""

import shutil
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from quire.storage.cleaning import (
    bytes_native,
    cleaned_segment,
    filter_native,
    filtering,
    key_table_native,
    offset_map,
    offset_map_builder,
    offset_map_builder_native,
    special_batches,
)
from tests.storage.cleaning.native_loops import interpreted_modules


@pytest.fixture(scope="module", params=["compiled", "interpreted"])
def native(request: pytest.FixtureRequest) -> Iterator[SimpleNamespace]:
    """The loops, which the whole package uses while the test runs."""
    if request.param == "compiled":
        require_compiled()
        yield SimpleNamespace(
            bytes_native=bytes_native,
            key_table_native=key_table_native,
            offset_map_builder_native=offset_map_builder_native,
            filter_native=filter_native,
        )
        return
    loops = interpreted_modules()
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(offset_map, "KeyTable", loops.key_table_native.KeyTable)
        patching.setattr(offset_map_builder, "map_batches", loops.offset_map_builder_native.map_batches)
        patching.setattr(offset_map_builder, "map_records", loops.offset_map_builder_native.map_records)
        patching.setattr(filtering, "filter_batches", loops.filter_native.filter_batches)
        patching.setattr(special_batches, "retain_records", loops.filter_native.retain_records)
        patching.setattr(cleaned_segment, "index_batches", loops.filter_native.index_batches)
        yield loops


def require_compiled() -> None:
    if filter_native.COMPILED:
        return
    if shutil.which("cc") or shutil.which("gcc") or shutil.which("clang"):
        pytest.fail("there is a C compiler but no compiled loops of compaction: run `make setup`")
    pytest.skip("no C compiler here")

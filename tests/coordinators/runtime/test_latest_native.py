"""The last record of each key in a log's batches: compiled and interpreted alike."""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quire
from quire.coordinators.runtime import latest_native
from quire.protocol.records import Compression, Record, build_batch
from quire.protocol.records.batch import patch

Latest = dict[bytes, tuple[int, bytes | None]]


def interpreted() -> ModuleType:
    source = Path(quire.__file__).parent / "coordinators" / "runtime" / "latest_native.py"
    loader = SourceFileLoader("latest_native_interpreted", str(source))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


BOTH_WAYS = pytest.mark.parametrize("native", [latest_native, interpreted()], ids=["installed", "interpreted"])

keys = st.sampled_from([b"", b"a", b"b", b"c" * 200])
values = st.one_of(st.none(), st.binary(max_size=5), st.just(b"v" * 300))
logs = st.lists(st.lists(st.tuples(keys, values), min_size=1, max_size=4), max_size=8)


def batch(base_offset: int, records: list[tuple[bytes, bytes | None]]) -> bytes:
    built = build_batch([Record(0, 1000, key, value) for key, value in records])
    patch(built, 0, base_offset, 0)
    return bytes(built)


@BOTH_WAYS
@settings(deadline=None)
@given(log=logs, first_offset=st.integers(0, 20))
def test_the_last_value_of_each_key_is_kept_in_the_order_of_the_log(
    native: ModuleType, log: list[list[tuple[bytes, bytes | None]]], first_offset: int
) -> None:
    source, offset = b"", 0
    expected: Latest = {}
    for records in log:
        source += batch(offset, records)
        for key, value in records:
            if offset >= first_offset:
                expected.pop(key, None)
                expected[key] = (offset, value)
            offset += 1
    latest: Latest = {}
    assert native.remember_latest(latest, source, 0, first_offset) == (len(source), max(offset, first_offset))
    assert list(latest.items()) == list(expected.items())


@BOTH_WAYS
@pytest.mark.parametrize(
    "special",
    [
        build_batch([Record(0, 0, b"k", b"v")], producer_id=1, producer_epoch=0, transactional=True),
        build_batch([Record(0, 0, b"k", b"v" * 100)], compression=Compression.GZIP),
        batch(1, [(b"k", b"v")])[:-1],
        batch(1, [(b"k", b"v")])[:20],
    ],
    ids=["transactional", "compressed", "cut off", "cut off in the header"],
)
def test_batches_that_are_not_plain_and_whole_are_left_to_the_caller(native: ModuleType, special: bytes) -> None:
    plain = batch(0, [(b"a", b"1")])
    latest: Latest = {}
    assert native.remember_latest(latest, plain + bytes(special), 0, 0) == (len(plain), 1)
    assert latest == {b"a": (0, b"1")}


@BOTH_WAYS
def test_a_record_without_a_key_is_an_error(native: ModuleType) -> None:
    with pytest.raises(ValueError, match="key"):
        native.remember_latest({}, bytes(build_batch([Record(0, 0, None, b"v")])), 0, 0)


@BOTH_WAYS
@settings(deadline=None)
@given(position=st.integers(0, 200), byte=st.integers(0, 255))
def test_damage_is_an_error_or_harmless(native: ModuleType, position: int, byte: int) -> None:
    whole = bytearray(batch(0, [(b"key", b"value"), (b"key", None), (b"other", b"v" * 100)]))
    whole[position % len(whole)] = byte
    try:
        reached, _ = native.remember_latest({}, bytes(whole), 0, 0)
    except ValueError:
        return
    assert reached in (0, len(whole))

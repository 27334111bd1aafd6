"""Arrow columns become the same records as when encoded one by one; compiled and interpreted alike."""

from array import array
from collections.abc import Iterator, Sequence
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quire.client import arrow_rows_native
from quire.client.partitioner import partition_for_key
from quire.protocol.records import HEADER_BYTES, Record
from quire.protocol.records.encode_native import append_records

STICKY = 1
PARTITIONS = 3


def interpreted() -> ModuleType:
    source = Path(arrow_rows_native.__file__).parent / "arrow_rows_native.py"
    loader = SourceFileLoader("arrow_rows_interpreted", str(source))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    assert not module.COMPILED
    return module


@pytest.fixture(scope="module", params=["installed", "interpreted"])
def native(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    yield arrow_rows_native if request.param == "installed" else interpreted()


class Row(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    wanted: int | None


def bitmap(present: Sequence[bool], start: int = 0) -> bytes | None:
    if all(present):
        return None
    bits = bytearray((start + len(present)) // 8 + 1)
    for index, there in enumerate(present, start):
        bits[index >> 3] |= there << (index & 7)
    return bytes(bits)


def layout(values: Sequence[bytes | None], start: int = 0) -> tuple[memoryview, bytes, bytes | None, int]:
    """As Arrow keeps the values, behind `start` rows of another batch."""
    shared = b"someone else's"
    ends = [0] * start + [len(shared)]
    for value in values:
        ends.append(ends[-1] + len(value or b""))
    data = shared + b"".join(value or b"" for value in values)
    return memoryview(array("i", ends)), data, bitmap([value is not None for value in values], start), start


class Columns:
    def __init__(self, native: Any, rows: Sequence[Row], start: int = 0) -> None:
        pairs = [pair for row in rows for pair in row.headers]
        ends = [0] * (start + 1)
        for row in rows:
            ends.append(ends[-1] + len(row.headers))
        self.count = len(rows)
        self.keys = native.Column(*layout([row.key for row in rows], start))
        self.values = native.Column(*layout([row.value for row in rows], start))
        self.headers = native.Headers(
            memoryview(array("i", ends)),
            None,
            start,
            native.Column(*layout([name.encode() for name, _ in pairs])),
            native.Column(*layout([value for _, value in pairs])),
        )
        self.wanted = memoryview(array("i", [-7 if row.wanted is None else row.wanted for row in rows]))
        self.wanted_validity = bitmap([row.wanted is not None for row in rows])

    def digest(self, native: Any, seed: int = 1) -> int:
        found = native.digest_rows(
            seed, self.keys, self.values, self.headers, self.wanted, self.wanted_validity, self.count
        )
        assert isinstance(found, int)
        return found


def encode(native: Any, rows: Sequence[Row], batch_bytes: int, start: int = 0) -> dict[int, list[tuple[bytes, int]]]:
    """Every batch of every partition: its records and how many they are."""
    columns = Columns(native, rows, start)
    chosen = memoryview(array("i", [99] * len(rows)))
    assert native.choose_partitions(chosen, columns.keys, columns.wanted, columns.wanted_validity, PARTITIONS) == -1
    lanes = [native.Lane() for _ in range(PARTITIONS)]
    batches: dict[int, list[tuple[bytes, int]]] = {}

    def take(partition: int) -> None:
        count = lanes[partition].count
        if count:
            batches.setdefault(partition, []).append((bytes(lanes[partition].take())[HEADER_BYTES:], count))

    row = 0
    while row < len(rows):
        row = native.encode_rows(
            lanes, chosen, columns.keys, columns.values, columns.headers, row, len(rows), STICKY, batch_bytes
        )
        if row < len(rows):
            take(STICKY if chosen[row] < 0 else chosen[row])
    for partition in range(PARTITIONS):
        take(partition)
    return batches


def expected_partition(row: Row) -> int:
    if row.wanted is not None:
        return row.wanted
    return STICKY if row.key is None else partition_for_key(row.key, PARTITIONS)


FIELD = st.none() | st.binary(max_size=9) | st.binary(min_size=60, max_size=140)
ROWS = st.lists(
    st.builds(
        Row,
        FIELD,
        FIELD,
        st.lists(st.tuples(st.text(max_size=3), FIELD), max_size=3).map(tuple),
        st.none() | st.integers(0, PARTITIONS - 1),
    ),
    max_size=30,
)


@settings(deadline=None, max_examples=60)
@given(rows=ROWS, batch_bytes=st.integers(100, 2000), start=st.integers(0, 11))
def test_rows_become_the_intended_records(native: ModuleType, rows: list[Row], batch_bytes: int, start: int) -> None:
    batches = encode(native, rows, batch_bytes, start)
    for partition in range(PARTITIONS):
        mine = [row for row in rows if expected_partition(row) == partition]
        for records, count in batches.get(partition, []):
            assert len(records) + HEADER_BYTES <= batch_bytes or count == 1
            plain = bytearray()
            append_records(plain, [Record(0, 5, row.key, row.value, list(row.headers)) for row in mine[:count]], 5)
            assert records == plain
            mine = mine[count:]
        assert not mine


def test_a_batch_is_filled_as_far_as_its_size_allows(native: ModuleType) -> None:
    rows = [Row(None, bytes(100), (), 0)] * 50
    sizes = [count for _, count in encode(native, rows, 61 + 10 * 109)[0]]
    assert sizes == [10, 10, 10, 10, 10]


def test_a_value_larger_than_a_batch_gets_its_own_batch(native: ModuleType) -> None:
    rows = [Row(None, b"a", (), 0), Row(None, bytes(100_000), (), 0), Row(None, b"b", (), 0)]
    assert [count for _, count in encode(native, rows, 1000)[0]] == [1, 1, 1]


@pytest.mark.parametrize("wrong", [-1, PARTITIONS, 2**31 - 1])
def test_a_partition_that_does_not_exist_is_found(native: ModuleType, wrong: int) -> None:
    chosen = memoryview(array("i", [0] * 4))
    wanted = memoryview(array("i", [0, 2, wrong, 1]))
    assert native.choose_partitions(chosen, None, wanted, None, PARTITIONS) == 2


@settings(deadline=None, max_examples=60)
@given(rows=ROWS, data=st.data())
def test_a_digest_does_not_depend_on_order_or_on_how_rows_were_cut(
    native: ModuleType, rows: list[Row], data: st.DataObject
) -> None:
    whole = Columns(native, rows).digest(native)
    shuffled = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    parts = [Columns(native, shuffled[:cut]), Columns(native, shuffled[cut:], 3)]
    assert sum(part.digest(native) for part in parts) % 2**64 == whole


def test_everything_a_row_says_counts_in_the_digest(native: ModuleType) -> None:
    rows = [
        Row(b"k", b"v", (), None),
        Row(b"kv", b"", (), None),
        Row(b"", b"kv", (), None),
        Row(None, b"kv", (), None),
        Row(b"kv", None, (), None),
        Row(None, None, (), None),
        Row(b"", b"", (), None),
        Row(b"k", b"v", (), 0),
        Row(b"k", b"v", (), 1),
        Row(b"k", b"v", (("", b""),), None),
        Row(b"k", b"v", (("", None),), None),
        Row(b"k", b"v", (("a", b"b"),), None),
        Row(b"k", b"v", (("ab", b""),), None),
        Row(b"k", b"v\0", (), None),
        Row(b"k", bytes(8), (), None),
        Row(b"k", bytes(9), (), None),
        Row(b"k", bytes(7) + b"\1", (), None),
    ]
    digests = [Columns(native, [row]).digest(native) for row in rows]
    assert len(set(digests)) == len(rows)
    assert Columns(native, rows[:1]).digest(native, seed=2) != digests[0]


@settings(deadline=None, max_examples=60)
@given(rows=ROWS)
def test_compiled_and_interpreted_digests_are_the_same(rows: list[Row]) -> None:
    plain = interpreted()
    assert Columns(plain, rows).digest(plain) == Columns(arrow_rows_native, rows).digest(arrow_rows_native)

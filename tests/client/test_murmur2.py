"""The hashes of Java's org.apache.kafka.common.utils.Utils.murmur2; these six are in its own unit test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

from quire.client.murmur2_native import murmur2

JAVA = [
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
]


def as_java_int(number: int) -> int:
    return number - (1 << 32) if number >= 1 << 31 else number


@pytest.mark.parametrize(("key", "expected"), JAVA)
def test_hashes_are_javas(key: bytes, expected: int) -> None:
    assert as_java_int(murmur2(key)) == expected


@settings(deadline=None)
@given(st.binary(max_size=70))
def test_any_key_hashes_as_in_kafka_python(key: bytes) -> None:
    assert murmur2(key) == kafka_python_murmur2(key) & 0xFFFFFFFF


def test_the_interpreted_source_gives_the_same_numbers(tmp_path: Path) -> None:
    """If the module is compiled, its source must still give the right results on machines without a compiler."""
    import quire.client

    source = Path(quire.client.__file__).with_name("murmur2_native.py")
    copy = tmp_path / "interpreted_murmur2.py"
    copy.write_text(source.read_text())
    check = (
        "from interpreted_murmur2 import COMPILED, murmur2\n"
        "assert not COMPILED\n"
        f"for key, expected in {JAVA!r}:\n"
        "    assert murmur2(key) == expected & 0xFFFFFFFF, key\n"
    )
    subprocess.run([sys.executable, "-c", check], check=True, env={**os.environ, "PYTHONPATH": str(tmp_path)})

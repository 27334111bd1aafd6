"""Values of the reference implementation, on both sides of every length at which the algorithm changes; compiled and
interpreted alike."""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quire
from quire.coordinators.group.consumer import xxh3_native


def interpreted() -> ModuleType:
    source = Path(quire.__file__).parent / "coordinators" / "group" / "consumer" / "xxh3_native.py"
    loader = SourceFileLoader("xxh3_native_interpreted", str(source))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


INTERPRETED = interpreted()
BOTH_WAYS = pytest.mark.parametrize("native", [xxh3_native, INTERPRETED], ids=["installed", "interpreted"])

OF_THE_REFERENCE = [
    (0, 0x2D06800538D394C2),
    (1, 0xE12EF9D2EB86CEEB),
    (3, 0xA9088DDA485B481C),
    (4, 0x57648C318A7A307E),
    (8, 0xB0FB3E3C3F94990A),
    (9, 0x8ACA5CB309437C2E),
    (16, 0x2BD926D88792965A),
    (17, 0x621F018AAD19B14A),
    (32, 0x8911535E799E4D99),
    (33, 0xB6D8B523DB9B284C),
    (64, 0x1B1BF114C7371F1B),
    (96, 0xCFB21E0D09D8EF29),
    (97, 0xE1415CA7902A74DA),
    (128, 0xE9549AF9A74093E6),
    (129, 0xB54AD1CD8A4C84B9),
    (160, 0x898DF912F54AA5C2),
    (240, 0x3E136902EC966624),
    (241, 0xBD7D29B6BA966D6A),
    (256, 0xFF5A1CEFADE75BB9),
    (1024, 0xDC5ACF0B043C445B),
    (1025, 0xC856C953BBDBC807),
    (2048, 0x848D24CC268F7498),
    (4100, 0xBAA034688640D150),
]


@BOTH_WAYS
@pytest.mark.parametrize(("size", "expected"), OF_THE_REFERENCE)
def test_the_hash_is_that_of_the_reference_implementation(native: ModuleType, size: int, expected: int) -> None:
    assert native.xxh3_64(bytes((7 * number + size) & 0xFF for number in range(size))) == expected


@given(st.binary(max_size=3000))
def test_compiled_and_interpreted_it_is_the_same(data: bytes) -> None:
    assert xxh3_native.xxh3_64(data) == INTERPRETED.xxh3_64(data)

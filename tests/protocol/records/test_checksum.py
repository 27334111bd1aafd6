"""CRC-32C, and that loading it does not slow down a start."""

import subprocess
import sys

from quire.protocol.records.checksum import crc32c


def test_checksum_is_crc32c() -> None:
    assert crc32c(b"") == 0
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4


def test_checksum_takes_every_kind_of_buffer() -> None:
    assert crc32c(bytearray(b"123456789")) == crc32c(memoryview(b"0123456789")[1:]) == 0xE3069283


def test_package_metadata_is_not_read_for_it() -> None:
    script = "import sys, quire.protocol.records; sys.exit('importlib.metadata' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_no_codec_library_is_imported_before_its_first_use() -> None:
    script = (
        "import sys, quire.protocol.records; sys.exit(any(n in sys.modules for n in "
        "('lz4', 'zstandard', 'cramjam', 'zlib')))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0

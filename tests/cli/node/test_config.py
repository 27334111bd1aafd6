"""The file of settings on disk: reading it, and errors that name it."""

from pathlib import Path

import pytest

from quire.cli.node.config import load_config
from quire.config.errors import ConfigError


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_file_may_be_utf_8_or_latin_1_as_java_has_it(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes("# Grüße\nlog.dirs=/tmp/größer\nnum.partitions=6\n".encode(encoding))
    config = load_config(str(file))
    assert (config.log_dirs, config.get("num.partitions")) == (("/tmp/größer",), 6)


def test_a_binary_file_is_refused_with_its_name(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes(b"\x7fELF\0\0\0\xff")
    with pytest.raises(ConfigError, match=r"server.properties is not a text file"):
        load_config(str(file))

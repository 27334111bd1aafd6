"""Ports for programs that a test starts: no other test process has them, also while nothing listens there."""

import subprocess
import sys
from pathlib import Path

from tests.free_ports import BLOCK, free_cluster_port, free_port, free_ports

ROOT = Path(__file__).parents[1]


def test_ports_are_given_once_before_they_are_given_again() -> None:
    ports = free_ports(BLOCK // 2)
    assert len({*ports, free_port()}) == len(ports) + 1


def test_another_process_has_other_ports() -> None:
    own = free_ports(BLOCK // 2)
    code = "from tests.free_ports import *; print(*free_ports(BLOCK // 2), free_cluster_port(3))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not {int(word) for word in done.stdout.split()} & {*own, free_cluster_port(3)}

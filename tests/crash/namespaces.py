"""Hosts as network namespaces: each has an address of its own, and a cable to one switch that can be cut and slowed.

    switch: a bridge, 10.x.y.254, where the test's clients are
      |-- cable (veth) -- namespace of host 1, 10.x.y.1
      |-- cable (veth) -- namespace of host 2, 10.x.y.2 ...

It needs root and Linux's `ip` and `tc`. Names contain the process id, so test runs do not meet.
"""

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_CLONE_NEWNET = 0x40000000
_PREFIX = f"q{os.getpid() % 100_000}"
_NETWORK = f"10.{200 + os.getpid() % 50}.{os.getpid() // 50 % 250}"
SLOW = ("tbf", "rate", "256kbit", "burst", "2kb", "latency", "300ms")
"""32 KB a second, a packet at a time: packets wait, and are dropped if they would wait for longer than that."""


def why_not() -> str:
    """Why there can be no namespaces here; empty if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None or shutil.which("tc") is None:
        return "there is no ip or tc command"
    name = f"{_PREFIX}try"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return tried.stderr.strip()


class Hosts:
    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = list(ids)
        self._switch = f"{_PREFIX}sw"

    def address(self, host: int) -> str:
        return f"{_NETWORK}.{host}"

    def set_up(self) -> None:
        _run("link", "add", self._switch, "type", "bridge")
        _run("addr", "add", f"{_NETWORK}.254/24", "dev", self._switch)
        _run("link", "set", self._switch, "up")
        for host in self.ids:
            name, cable = self._name(host), self._cable(host)
            _run("netns", "add", name)
            _run("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
            _run("link", "set", cable, "master", self._switch, "up")
            _run("-n", name, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
            _run("-n", name, "link", "set", "eth0", "up")
            _run("-n", name, "link", "set", "lo", "up")

    def remove(self) -> None:
        for host in self.ids:
            subprocess.run(["ip", "netns", "del", self._name(host)], capture_output=True)
            subprocess.run(["ip", "link", "del", self._cable(host)], capture_output=True)
        subprocess.run(["ip", "link", "del", self._switch], capture_output=True)

    def cut(self, host: int) -> None:
        """Nothing passes in either direction, and nobody is told: connections stay open."""
        _run("link", "set", self._cable(host), "nomaster")

    def join(self, host: int) -> None:
        _run("link", "set", self._cable(host), "master", self._switch)

    def slow(self, host: int) -> None:
        """Limits the rate in both directions."""
        subprocess.run(["tc", "qdisc", "add", "dev", self._cable(host), "root", *SLOW], check=True)
        subprocess.run(["tc", "-n", self._name(host), "qdisc", "add", "dev", "eth0", "root", *SLOW], check=True)

    def heal(self, host: int) -> None:
        subprocess.run(["tc", "qdisc", "del", "dev", self._cable(host), "root"], check=True)
        subprocess.run(["tc", "-n", self._name(host), "qdisc", "del", "dev", "eth0", "root"], check=True)

    def held_up(self, host: int) -> int:
        """How many packets to a slowed host had to wait."""
        shown = subprocess.run(
            ["tc", "-s", "qdisc", "show", "dev", self._cable(host)], check=True, capture_output=True, text=True
        )
        return sum(int(each) for each in re.findall(r"overlimits (\d+)", shown.stdout))

    @contextmanager
    def inside(self, host: int) -> Iterator[None]:
        """Processes that this thread starts meanwhile are on the host."""
        with open("/proc/thread-self/ns/net") as before, open(f"/run/netns/{self._name(host)}") as namespace:
            _enter(namespace.fileno())
            try:
                yield
            finally:
                _enter(before.fileno())

    def _name(self, host: int) -> str:
        return f"{_PREFIX}h{host}"

    def _cable(self, host: int) -> str:
        return f"{_PREFIX}c{host}"


def _run(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def _enter(descriptor: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")

"""Machines of an operator on one machine: a folder and ports for each, and scripts in place of ssh, sudo and systemctl.

A script of the documentation runs as it is written. Addresses such as `host-2:9092` become those of the test, and
/var/lib/quire, /etc/quire and /backup the folders of the host where `ssh` runs the command. The nodes are real.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from quire.raft.replicas import ReplicaKey
from tests.cli.command import QUIRE, environment
from tests.crash.real_cluster import wait_until
from tests.free_ports import free_ports

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
COMMAND_S = 300.0
WAIT_S = 90
_ADDRESS = re.compile(r"host-(\d+):(9092|9093)")

_SCRIPTS = {
    "quire": f'#!/bin/sh\nexec {" ".join(QUIRE)} "$@"\n',
    "sudo": '#!/bin/bash\nif [ "$1" = -u ]; then shift 2; fi\nexec "$@"\n',
    "pip": '#!/bin/sh\necho "pip $*" >> "$MACHINES/pip.log"\n',
    "ssh": """#!/bin/bash
export ON="$MACHINES/$1"
shift
command="$*"
for path in /var/lib/quire /etc/quire /backup; do command="${command//$path/$ON$path}"; done
command="${command//\\/opt\\/quire\\/bin\\//}"
cd "$ON" && exec bash -c "$command"
""",
    "systemctl": """#!/bin/bash
pid() { cat "$ON/pid" 2>/dev/null; }
runs() { [ -n "$(pid)" ] && grep -q '^State:.[^Z]' "/proc/$(pid)/status" 2>/dev/null; }
stop() {
  if runs; then kill -TERM "$(pid)"; fi
  while runs; do sleep 0.05; done
  : > "$ON/pid"
}
start() {
  runs && return
  ( exec setsid quire start --config "$ON/etc/quire/server.properties" >> "$ON/log" 2>&1 < /dev/null ) &
  echo $! > "$ON/pid"
}
case "$1 $2" in
  "start quire") start ;;
  "stop quire") stop ;;
  "restart quire") stop; start ;;
  *) echo "systemctl $* is not imitated" >&2; exit 1 ;;
esac
""",
}


class Machines:
    def __init__(self, folder: Path, settings: Mapping[str, object]) -> None:
        self.folder = folder
        self._settings = dict(settings)
        self._ports: dict[tuple[int, int], int] = {}
        self._bin = folder / "bin"
        self._bin.mkdir(parents=True)
        for name, script in _SCRIPTS.items():
            path = self._bin / name
            path.write_text(script)
            path.chmod(0o755)

    # --- Machines

    def host(self, node: int) -> Path:
        return self.folder / f"host-{node}"

    def data(self, node: int) -> Path:
        return self.host(node) / "var/lib/quire"

    def set_up(
        self, node: int, roles: str, controllers: Iterable[int], settings: Mapping[str, object] | None = None
    ) -> None:
        """An empty machine with a file of settings, those of all machines and its own."""
        for name in ("var/lib/quire", "etc/quire", "backup"):
            (self.host(node) / name).mkdir(parents=True)
        listeners = []
        if "broker" in roles:
            listeners.append(f"PLAINTEXT://host-{node}:9092")
        if "controller" in roles:
            listeners.append(f"CONTROLLER://host-{node}:9093")
        lines = {
            "process.roles": roles,
            "node.id": node,
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(f"host-{each}:9093" for each in controllers),
            "log.dirs": self.data(node),
            **self._settings,
            **(settings or {}),
        }
        text = "".join(f"{key}={value}\n" for key, value in lines.items())
        (self.host(node) / "etc/quire/server.properties").write_text(self.here(text))

    def voters(self, keys: Iterable[ReplicaKey]) -> str:
        """For --initial-controllers."""
        return ",".join(f"{key.id}@host-{key.id}:9093:{_text(key.directory_id)}" for key in keys)

    def lose(self, node: int) -> None:
        """The machine fails with its disk; one with the same name and file takes its place."""
        self.kill(node)
        shutil.rmtree(self.data(node))
        self.data(node).mkdir()

    def kill(self, *nodes: int) -> None:
        for node in nodes:
            pid = self.pid(node)
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
                wait_until(lambda pid=pid: not _runs(pid), f"node {node} does not end")  # type: ignore[misc]

    def pid(self, node: int) -> int | None:
        path = self.host(node) / "pid"
        text = path.read_text().strip() if path.exists() else ""
        return int(text) if text and _runs(int(text)) else None

    @property
    def nodes(self) -> list[int]:
        return sorted(int(each.name.removeprefix("host-")) for each in self.folder.glob("host-*"))

    def logs(self) -> str:
        paths = [(node, self.host(node) / "log") for node in self.nodes]
        return "\n".join(f"--- host-{node}\n{path.read_text()}" for node, path in paths if path.exists())

    # --- Commands

    def here(self, text: str) -> str:
        """The text with the addresses of this test."""
        return _ADDRESS.sub(lambda found: f"127.0.0.1:{self._port(int(found[1]), int(found[2]))}", text)

    @property
    def servers(self) -> str:
        return self.here("host-1:9092,host-2:9092,host-3:9092")

    def run(self, script: str) -> "subprocess.CompletedProcess[str]":
        """Runs a script until a command fails. A loop must not hide a failure, and no wait is long here."""
        variables = {
            "PATH": f"{self._bin}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "MACHINES": str(self.folder),
            "QUIRE_BOOTSTRAP": self.servers,
        }
        strict = re.sub(r"--wait \d+", f"--wait {WAIT_S}", script.replace(" || break", " || exit 1"))
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self.here(strict)],
            cwd=self.folder,
            env=environment(variables),
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
        )

    def must(self, script: str) -> str:
        done = self.run(script)
        if done.returncode:
            print(self.logs())
        assert done.returncode == 0, f"{script}\nended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _port(self, node: int, port: int) -> int:
        if (node, port) not in self._ports:
            (self._ports[node, port],) = free_ports(1)
        return self._ports[node, port]


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _text(directory_id: bytes) -> str:
    from quire.protocol import uuids

    return uuids.to_text(directory_id)

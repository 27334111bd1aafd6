"""The command's side of `control_socket`: asks the supervisor of a local cluster, and waits for its answers."""

import json
import os
import socket
from types import TracebackType
from typing import Any, NamedTuple, Self

from quire.cli.node.local.control_socket import FILE_NAME, short_path

_PATIENCE_S = 30.0


class SupervisorError(Exception):
    """The supervisor cannot be reached, or cannot do what it was asked; the text says why."""


class RunningNode(NamedTuple):
    id: int
    address: str | None
    """None while it does not serve."""
    pid: int | None


class SupervisorClient:
    def __init__(self, folder: str) -> None:
        if not os.path.isdir(folder):
            raise SupervisorError(f"there is no folder {folder}: name the one of `quire start --nodes` with --data.")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with short_path(folder) as path:
                self._socket.connect(path)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            self._socket.close()
            raise SupervisorError(
                f"no cluster of `quire start --nodes` runs in {folder} (nothing answers at {FILE_NAME}): start it, or "
                "name its folder with --data."
            ) from error
        except OSError as error:
            self._socket.close()
            raise SupervisorError(
                f"{folder}/{FILE_NAME} cannot be used ({error.strerror}): run this as the user who started the cluster."
            ) from error
        self._answers = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._answers.close()
        self._socket.close()

    def nodes(self) -> list[RunningNode]:
        self._socket.settimeout(_PATIENCE_S)
        answer = self._ask("nodes")
        return [RunningNode(each["id"], each["address"], each["pid"]) for each in answer["nodes"]]

    def restart(self, node: int) -> str:
        """Returns its address when it serves again, however long its start takes."""
        self._socket.settimeout(None)
        answer = self._ask(f"restart {node}")
        while "serving" not in answer:
            answer = self._answer()
        return str(answer["address"])

    def _ask(self, request: str) -> dict[str, Any]:
        try:
            self._socket.sendall(f"{request}\n".encode())
        except OSError:
            raise _gone() from None
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        try:
            line = self._answers.readline()
        except TimeoutError:
            raise SupervisorError("the supervisor of the cluster does not answer: its process may be paused.") from None
        except OSError:
            line = b""
        if not line:
            raise _gone()
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise SupervisorError(f"{str(answer['error']).rstrip('.')}.")
        return answer


def _gone() -> SupervisorError:
    return SupervisorError("the supervisor stopped meanwhile: start the cluster again with `quire start --nodes`.")

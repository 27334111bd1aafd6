import socket
import sys

import pytest

from quire.cli.node.local.ports import ReservedPorts


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere a port cannot be kept free")
def test_a_reserved_port_can_be_listened_on_again_and_again_and_refuses_between() -> None:
    with ReservedPorts() as ports:
        first, second = ports.take(), ports.take()
        assert first != second
        for _ in range(2):
            with socket.create_server(("127.0.0.1", first)), socket.create_connection(("127.0.0.1", first), 5):
                pass
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", first), 5)

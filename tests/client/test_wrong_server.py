import pytest

from quire.address import Address
from quire.client.wrong_server import controllers_port, what_answered


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "is an HTTP server"),
        (b"<!DOCTYPE HTML>", "is an HTTP server"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "expects TLS"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "is an SSH server"),
        (b"-ERR unknown command\r\n", "it answered '-ERR unknown command'"),
        (b"\x7f\xff\xff\xff", "is this a Kafka port without TLS?"),
        (b"\x00\x00\x00\x00", "is this a Kafka port without TLS?"),
        (b"\r\n\r\n", "is this a Kafka port without TLS?"),
    ],
)
def test_a_server_is_recognised_by_its_first_bytes(first: bytes, words: str) -> None:
    assert words in what_answered(first)


def test_a_controllers_port_is_recognised_and_the_error_names_the_addresses_for_clients() -> None:
    assert controllers_port([Address("a", 1), Address("b", 2)]).endswith("clients use a:1,b:2")
    assert "serves no clients" in controllers_port([])

import pytest

from quire.address import Address
from quire.client.servers import AddressError, parse_address, parse_servers


def test_several_servers_are_separated_by_commas() -> None:
    assert parse_servers("one:9092, two:9093,") == [Address("one", 9092), Address("two", 9093)]


def test_a_server_without_a_port_means_kafkas_port() -> None:
    assert parse_servers("localhost") == [Address("localhost", 9092)]


def test_ipv6_addresses_are_in_brackets_in_both_directions() -> None:
    address = parse_address("[::1]:9092")
    assert address == Address("::1", 9092)
    assert str(address) == "[::1]:9092"
    assert parse_servers("[fe80::1]") == [Address("fe80::1", 9092)]


@pytest.mark.parametrize("text", ["", ",", "host:", ":9092", "host:port", "host:70000", "host:-1", "host:²"])
def test_an_invalid_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(AddressError, match=r"127\.0\.0\.1:9092"):
        parse_servers(text)


@pytest.mark.parametrize("text", ["http://127.0.0.1:9092", "PLAINTEXT://broker:9092", "one:9092,SASL_SSL://two"])
def test_an_address_with_a_scheme_is_refused(text: str) -> None:
    with pytest.raises(AddressError, match="write it as host:port, without "):
        parse_servers(text)

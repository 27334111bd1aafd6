from quire.address import Address


def test_an_address_is_written_as_host_and_port_and_ipv6_in_brackets() -> None:
    assert str(Address("broker-1", 9092)) == "broker-1:9092"
    assert str(Address("fe80::1", 9092)) == "[fe80::1]:9092"

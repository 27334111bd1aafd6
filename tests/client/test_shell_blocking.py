"""The blocking client: which seams it gives to the client's logic."""

from quire.client.shell_blocking import BlockingClient
from quire.protocol.uuids import to_text


def test_an_id_for_a_group_member_never_begins_with_a_dash() -> None:
    """A command line would parse such an id as an option. One random UUID in 64 begins with a dash as text."""
    with BlockingClient("127.0.0.1:1") as client:
        ids = [to_text(client.cluster.random.uuid()) for _ in range(2000)]
    assert not [member_id for member_id in ids if member_id.startswith("-")]

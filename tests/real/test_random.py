"""Random numbers: different every time, within their limits; and ids in Kafka's form."""

import base64

from quire.real.random import RealRandom
from quire.seams import Random


def test_random_bytes_have_the_size_asked_for_and_differ() -> None:
    random: Random = RealRandom()
    assert len(random.random_bytes(33)) == 33
    assert random.random_bytes(16) != random.random_bytes(16)


def test_numbers_stay_below_their_limit_and_reach_every_value() -> None:
    random = RealRandom()
    assert {random.below(4) for _ in range(500)} == {0, 1, 2, 3}


def test_uuids_are_version_4_and_their_text_never_starts_with_a_dash() -> None:
    random = RealRandom()
    for _ in range(1000):
        uuid = random.uuid()
        assert uuid[6] >> 4 == 4
        assert uuid[8] >> 6 == 0b10
        assert not base64.urlsafe_b64encode(uuid).startswith(b"-")

"""One seed, one run; and streams that do not affect each other."""

from base64 import urlsafe_b64encode

from quire.seams import Random
from simulator.random import SimRandom


def draws(random: SimRandom) -> list[object]:
    return [random.below(1000), random.random_bytes(8), random.uuid(), random.between(0, 1), random.choice("abc")]


def test_the_same_seed_gives_the_same_values_and_another_seed_others() -> None:
    assert draws(SimRandom(7)) == draws(SimRandom(7))
    assert draws(SimRandom(7)) != draws(SimRandom(8))


def test_a_stream_depends_on_its_name_and_not_on_what_was_drawn_before() -> None:
    parent = SimRandom(7)
    early = draws(parent.stream("disk"))
    parent.random_bytes(100)
    assert draws(parent.stream("disk")) == early
    assert draws(parent.stream("network")) != early


def test_uuids_are_version_4_and_safe_on_a_command_line() -> None:
    random: Random = SimRandom(1)
    for _ in range(2000):
        uuid = random.uuid()
        assert (len(uuid), uuid[6] >> 4, uuid[8] >> 6) == (16, 4, 2)
        assert not urlsafe_b64encode(uuid).startswith(b"-")

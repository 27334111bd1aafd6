from quire_samples.paced_sending import AT_ONCE, Limits


def test_limits_say_how_many_are_due_and_when_it_is_over() -> None:
    steady = Limits(records=100, seconds=10, rate=50)
    assert steady.due(1.0, 20) == 31
    assert steady.due(1.0, 60) == 0
    assert steady.due(9.0, 98) == 2
    assert not steady.over(9.9, 99)
    assert steady.over(9.9, 100)
    assert steady.over(10.0, 0)


def test_without_limits_a_handful_is_due_at_any_time() -> None:
    free = Limits(records=0, seconds=0, rate=0)
    assert free.due(0.0, 0) == AT_ONCE
    assert not free.over(1e9, 10**9)

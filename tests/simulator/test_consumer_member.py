from simulator.clients.consumer_member import ConsumerMember
from simulator.main import Kind
from simulator.world import World

SESSION_TIMEOUT_MS = 2000


def _member_that_revokes() -> ConsumerMember:
    scene = World(1, Kind().plan(1), cast=lambda _: []).scene
    member = ConsumerMember(scene, "member", "group", ["member"], SESSION_TIMEOUT_MS)
    member._heard_at = member._releasing_since = member._now()
    return member


def test_a_member_that_revokes_in_time_is_not_removed() -> None:
    member = _member_that_revokes()
    assert member._is_heard()
    member.scene.clock.run_for(member._rebalance_timeout_ms)
    member._heard_at = member._now()
    assert not member._is_heard()


def test_a_member_that_revokes_may_be_removed_early_if_a_clock_has_changed_since_it_was_told() -> None:
    """The coordinator has measured a part of the rebalance timeout by another clock, whatever it has heard since."""
    member = _member_that_revokes()
    member.scene.clock_changed()
    member._heard_at = member._now()
    assert not member._is_heard()
    member._releasing_since = None
    assert member._is_heard()

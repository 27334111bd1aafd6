"""Seeds draw how often topics are replicated, how many replicas must be in sync, and how safe elections are."""

from simulator.ledger import UNCLEAN_ELECTION
from simulator.main import Kind
from simulator.replication_plan import MIN_ISR

PLANS = [Kind(clusters=True).plan(seed) for seed in range(60)]
CLUSTERS = [plan for plan in PLANS if plan.nodes > 1]


def test_topics_have_one_to_three_replicas_and_never_more_than_there_are_brokers() -> None:
    assert {topic.replication_factor for plan in PLANS for topic in plan.topics} == {1, 2, 3}
    for plan in CLUSTERS:
        brokers = sum("broker" in role for role in plan.roles)
        assert all(topic.replication_factor <= brokers for topic in plan.topics)
        assert plan.most_replicas == min(3, brokers)


def test_no_topic_needs_more_replicas_in_sync_than_it_has() -> None:
    needed = {(int(topic.settings[MIN_ISR]), topic.replication_factor) for plan in CLUSTERS for topic in plan.topics}
    assert needed == {(1, 1), (1, 2), (2, 2), (1, 3), (2, 3)}


def test_some_topics_may_elect_replicas_that_lack_records_but_not_those_of_transactions() -> None:
    unclean = [topic for plan in CLUSTERS for topic in plan.topics if topic.settings.get(UNCLEAN_ELECTION) == "true"]
    assert unclean
    assert not any(topic.transactional for topic in unclean)


def test_coordinators_have_as_many_replicas_as_they_can() -> None:
    for plan in CLUSTERS:
        assert plan.node_settings["offsets.topic.replication.factor"] == str(plan.most_replicas)
        assert plan.node_settings["transaction.state.log.replication.factor"] == str(plan.most_replicas)


def test_a_long_seed_lasts_for_a_minute_at_least() -> None:
    assert all(plan.duration_ms >= 60_000 for plan in CLUSTERS)


def test_in_some_clusters_leaderships_return_while_faults_go_on() -> None:
    intervals = {plan.node_settings["leader.imbalance.check.interval.seconds"] for plan in CLUSTERS}
    assert intervals == {"1", "4", "300"}


def test_in_some_clusters_replicas_move() -> None:
    assert {plan.reassigns for plan in CLUSTERS} == {True, False}

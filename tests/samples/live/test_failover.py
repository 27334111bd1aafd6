"""`make run KILL=1`: kills a broker of a real cluster, and reports it."""

from quire.client.shell_blocking import BlockingClient
from quire.testing import Cluster
from quire_samples.live.failover import Failover
from tests.wire.clients import eventually


def test_the_leader_is_killed_when_the_time_comes_and_its_return_is_noticed() -> None:
    with Cluster(nodes=3, start_timeout_s=60) as cluster:
        topic = cluster.create_topic(partitions=3)
        with BlockingClient(cluster.bootstrap_servers) as client:
            failover = Failover(30.0, topic, cluster.kill)
            assert failover.advance(client, 29.9) == []
            assert failover.summary() == "no broker was killed"
            leader = cluster.leader_of(topic, 0)
            (said,) = failover.advance(client, 30.0)
            assert failover.killed == leader and leader not in cluster.pids
            assert said == failover.summary()
            assert said.startswith(f"broker {leader} was killed (SIGKILL), which led ")
            assert failover.led_after_s is not None and "all had another leader after" in said
            eventually(lambda: cluster.leader_of(topic, 0) not in (leader, -1))  # another node may hear of it later
            assert failover.advance(client, 31.0) == [], "it is down"
            assert not failover.is_over
            cluster.start(leader)
            news: list[str] = []
            while not news:
                news = failover.advance(client, 32.0)
            assert news[0].startswith(f"broker {leader} is back, and in sync ")
            assert failover.is_over and failover.advance(client, 33.0) == []


def test_a_topic_that_does_not_exist_yet_is_waited_for() -> None:
    with Cluster() as cluster, BlockingClient(cluster.bootstrap_servers) as client:
        failover = Failover(0.0, "later", cluster.kill)
        assert failover.advance(client, 1.0) == []
        assert failover.killed is None and not failover.is_over and cluster.pids

"""Generated commands: the same from the same seed, and of every kind."""

from itertools import islice
from random import Random

from quire_samples.inventory.events import Reason, Refusal, Source, StockEvent
from quire_samples.inventory.generator import Mixture, Sent, generate
from quire_samples.inventory.stock import Stock


def take(count: int, seed: int = 7, name: str = "run") -> list[Sent]:
    return list(islice(generate(Random(seed), name, Mixture(), start_ms=1_000, step_ms=10), count))


def test_the_same_seed_makes_the_same_commands() -> None:
    assert take(500) == take(500)
    assert take(500) != take(500, seed=8)


def test_two_runs_never_share_an_id() -> None:
    assert not {sent.key for sent in take(500)} & {sent.key for sent in take(500, name="other")}


def test_most_are_done_and_every_kind_of_refusal_that_a_shop_sees_occurs() -> None:
    stock = Stock()
    outcomes = [stock.decide(sent.value, Source(0, offset)) for offset, sent in enumerate(take(5_000))]
    refused = dict.fromkeys(Reason, 0)
    for outcome in outcomes:
        if isinstance(outcome, Refusal):
            refused[outcome.reason] += 1
    done: list[list[StockEvent]] = [outcome for outcome in outcomes if isinstance(outcome, list)]
    assert len(done) > 3_000
    assert refused[Reason.INSUFFICIENT] > 100
    assert refused[Reason.DUPLICATE] > 10
    assert refused[Reason.MALFORMED] > 10
    assert refused[Reason.ID_REUSED] == refused[Reason.EXCESSIVE] == 0
    assert any(len(events) > 1 for events in done)

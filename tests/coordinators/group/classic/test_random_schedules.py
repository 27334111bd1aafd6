"""Consumers that join, leave, die and resubscribe, while requests are late, lost, duplicated and out of order, records
are committed late or never, the coordinator moves and clocks jump: the invariants that hold all the time, and those
that hold at the end.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.random import SimRandom
from tests.coordinators.group.classic.model_world import CONSUMERS, REASONS, ModelWorld

NUMBERS = st.integers(0, 11)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("start"), NUMBERS),
        st.tuples(st.just("stop"), NUMBERS),
        st.tuples(st.just("kill"), NUMBERS),
        st.tuples(st.just("change"), NUMBERS),
        st.tuples(st.just("join again"), NUMBERS),
        st.tuples(st.just("lose answer"), NUMBERS),
        st.tuples(st.sampled_from(["arrive"]), NUMBERS),
        st.tuples(st.sampled_from(["arrive"]), st.just(0)),
        st.tuples(st.just("arrive all"), st.just(0)),
        st.tuples(st.just("arrive again"), NUMBERS),
        st.tuples(st.just("lose"), NUMBERS),
        st.tuples(st.just("wait"), st.sampled_from([1, 500, 3_000, 6_000, 11_000, 30_000])),
        st.tuples(st.just("jump"), st.sampled_from([-3_600_000, 3_600_000])),
        st.tuples(st.just("hold"), st.just(0)),
        st.tuples(st.just("commit"), st.integers(1, 3)),
        st.tuples(st.just("fail"), st.integers(0, 2)),
        st.tuples(st.just("reload"), st.just(0)),
    ),
    max_size=60,
)


def take(world: ModelWorld, step: str, number: int) -> None:
    alive = world.alive()
    waiting = len(world.on_its_way)
    match step:
        case "start" if len(alive) < CONSUMERS:
            world.start(number)
        case "stop" if alive:
            alive[number % len(alive)].stop()
        case "kill" if alive:
            alive[number % len(alive)].kill()
        case "change" if alive:
            alive[number % len(alive)].change_its_mind()
        case "join again" if alive:
            alive[number % len(alive)].join_again()
        case "lose answer" if alive:
            world.lose_answer(number % len(alive))
        case "arrive" if waiting:
            world.arrive(number % waiting)
        case "arrive all":
            for _ in range(waiting):
                world.arrive(0)
        case "arrive again" if waiting:
            world.arrive_again(number % waiting)
        case "lose" if waiting:
            world.on_its_way.pop(number % waiting)
        case "wait":
            world.shard.wait(number)
        case "jump":
            world.clock.jump_wall(number)
        case "hold":
            world.shard.holding = True
        case "commit":
            world.shard.commit(number)
        case "fail":
            world.shard.fail(REASONS[number % 2], kept=number)
        case "reload":
            world.shard.reload()


COMMON = ("arrive", "arrive", "arrive", "arrive all", "wait", "wait", "start", "commit")
RARE = (
    "stop",
    "kill",
    "change",
    "join again",
    "join again",
    "lose answer",
    "arrive again",
    "lose",
    "jump",
    "hold",
    "fail",
    "reload",
)
WAITS_MS = (1, 100, 500, 1_000, 3_000, 11_000)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 1 << 32))
def test_the_same_holds_in_long_lives(seed: int) -> None:
    random = SimRandom(seed)
    world = ModelWorld()
    for _ in range(200):
        step = random.choice(RARE if random.chance(0.2) else COMMON)
        number = random.choice(WAITS_MS) if step in ("wait", "jump") else random.below(12)
        take(world, step, number)
        world.check_group()
    world.calm_down()
    world.check_log()
    world.check_everybody_is_in()


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_a_generation_has_one_owner_per_partition_and_the_living_find_together(steps: list[tuple[str, int]]) -> None:
    world = ModelWorld()
    for step, number in steps:
        take(world, step, number)
        world.check_group()
    world.calm_down()
    world.check_log()
    world.check_everybody_is_in()

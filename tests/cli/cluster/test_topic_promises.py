"""What `quire explain` says, by settings and state: a table of topics and of sentences that must or must not come."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from quire.cli.cluster import topic_promises
from quire.cli.cluster.topic_state import NEVER, Settings, TopicState
from quire.client.admin.topic_replicas import Replicas

RACKS = {1: "east", 2: "west", 3: "north"}


def topic(
    *partitions: Replicas,
    up: tuple[int, ...] = (1, 2, 3),
    brokers: Mapping[int, str | None] = {1: None, 2: None, 3: None},
    keeps_eligible: bool = True,
    voters: tuple[int, ...] = (101, 102, 103),
    min_isr: int = 2,
    flush: int = NEVER,
    flush_ms: int = NEVER,
    unclean: bool = False,
) -> TopicState:
    """A topic called orders; by default with one partition of three replicas, all in sync."""
    settings = Settings(min_isr, flush, flush_ms, unclean)
    return TopicState(
        "orders", settings, partitions or (part(),), brokers, frozenset(up), keeps_eligible, frozenset(voters)
    )


def part(
    index: int = 0,
    leader: int | None = 1,
    replicas: tuple[int, ...] = (1, 2, 3),
    isr: tuple[int, ...] = (1, 2, 3),
    elr: tuple[int, ...] = (),
    last: tuple[int, ...] = (),
    offline: tuple[int, ...] = (),
) -> Replicas:
    return Replicas(index, leader, replicas, isr, elr, last, offline)


class Case(NamedTuple):
    topic: TopicState
    said: tuple[str, ...]
    unsaid: tuple[str, ...] = ()


ALONE = part(replicas=(1,), isr=(1,))

PROMISES = {
    "three replicas, two required": Case(
        topic(),
        (
            "which are at least 2. It survives any number of killed processes, and the loss of 1 disk at a time.",
            "a failure of 2 machines or more at the same time may lose the last records, because",
            "acks=1: a record may be lost if its leader fails before all in-sync replicas have copied it",
            "acks=0: nothing is promised",
        ),
        ("unclean",),
    ),
    "one required": Case(
        topic(min_isr=1), ("the leader may be the only one", "a failure of a single machine may lose the last records")
    ),
    "three required": Case(
        topic(min_isr=3), ("at least 3", "loss of 2 disks at a time", "a failure of all 3 machines at")
    ),
    "more required than there are": Case(topic(min_isr=5), ("which are at least 3.",)),
    "one replica": Case(
        topic(ALONE),
        (
            "when its only replica has it",
            "but not a lost disk",
            "a failure of its machine may lose",
            "acks=1: the same",
        ),
        ("in-sync replicas have it",),
    ),
    "synced before each acknowledgement": Case(
        topic(flush=1), ("none loses a record", "(flush.messages=1)"), ("may lose",)
    ),
    "synced every thousand records": Case(
        topic(flush=1000),
        ("machines or more at the same time may lose fewer than 1,000 records of each partition (flush.messages).",),
    ),
    "synced by time": Case(topic(flush_ms=500), ("may lose the last records, those of about the last 500 ms",)),
    "synced every thousand records and by time": Case(
        topic(flush=1000, flush_ms=500),
        ("fewer than 1,000 records of each partition (flush.messages), those of about the last 500 ms (flush.ms).",),
    ),
    "synced before each acknowledgement, and by time": Case(topic(flush=1, flush_ms=500), (), ("500",)),
    "unclean elections": Case(
        topic(unclean=True),
        (
            "killed processes, while at least one in-sync replica stays up",
            "acknowledged before they are on disk. An unclean election may lose more.",
            "acknowledged records that it lacks are lost",
        ),
    ),
    "unclean elections, synced": Case(
        topic(unclean=True, flush=1),
        ("none loses a record, while at least one in-sync replica stays up, because",),
        ("may lose more",),
    ),
    "unclean elections, each record on every replica": Case(
        topic(unclean=True, min_isr=3),
        ("any number of killed processes, and the loss", "acknowledged records that it lacks are lost"),
        ("stays up", "may lose more"),
    ),
    "unclean elections, one replica": Case(topic(ALONE, unclean=True), ("killed processes, but",), ("unclean",)),
    "more replicas of some partitions": Case(
        topic(part(replicas=(1, 2), isr=(1, 2)), part(1), min_isr=2, unclean=True),
        ("a failure of 2 machines or more", "while at least one in-sync replica stays up"),
    ),
    "without eligible leader replicas": Case(
        topic(keeps_eligible=False),
        ("a failure of 2 machines or more at the same time, or of the last in-sync one, may",),
    ),
    "without eligible leader replicas, one required": Case(
        topic(keeps_eligible=False, min_isr=1), ("a failure of a single machine may",)
    ),
}

NOW = {
    "all is well": Case(
        topic(),
        (
            "All replicas are in sync.",
            "Any one broker may fail, and clients keep writing with acks=all and reading.",
            "Any 2 brokers may fail, and no acknowledged record is lost; clients keep reading, the last records when 2 "
            "replicas are in sync again.",
        ),
        ("rack", "controllers"),
    ),
    "brokers that are the controllers": Case(
        topic(voters=(1, 2, 3)),
        (
            "Any one broker may fail, and clients keep writing",
            "controllers too: with 2 more of them down, no leader is elected",
        ),
        ("Any 2 brokers",),
    ),
    "a controller that is down already": Case(
        topic(part(isr=(1, 2)), up=(1, 2), voters=(1, 2, 3)),
        ("with 1 more of them down, no leader",),
        ("Any one broker",),
    ),
    "one is enough": Case(
        topic(min_isr=1), ("Any 2 brokers may fail, and clients keep writing with acks=all and reading.",), ("lost",)
    ),
    "controllers that do not answer": Case(
        topic(part(isr=(1, 2)), up=(1, 2), voters=()),
        ("Broker 3 is down", "The controllers did not answer", "the last known state"),
        ("may fail", "one more broker fails"),
    ),
    "one broker down": Case(
        topic(part(isr=(1, 2)), up=(1, 2)),
        (
            "Broker 3 is down; it has replicas of partition 0.",
            "If one more broker fails, partitions may refuse acks=all until it is back.",
            "Any one broker may fail, and no acknowledged record is lost",
        ),
        ("All replicas", "and clients keep writing"),
    ),
    "a replica that lags": Case(
        topic(part(0, isr=(1, 2)), part(1)),
        ("Broker 3 is up and not in sync with partition 0.",),
        ("is down", "All replicas"),
    ),
    "many lagging replicas": Case(
        topic(*(part(index, isr=(1, 2)) for index in range(7))), ("partitions 0, 1, 2, 3, 4 and 2 more",)
    ),
    "too few in sync": Case(
        topic(part(0, isr=(1,), elr=(2,)), part(1), up=(1, 3)),
        ("Partition 0 has too few replicas in sync: acks=all is refused", "partitions may have no leader"),
        ("keep writing", "may refuse"),
    ),
    "a directory that failed": Case(
        topic(part(isr=(1, 2), offline=(3,))), ("Broker 3 is up and not in sync with partition 0.",)
    ),
    "no leader, eligible replicas known": Case(
        topic(part(leader=None, isr=(), elr=(1, 2)), up=(3,)),
        ("Partition 0 has no leader: it waits for one of the brokers 1, 2.",),
        ("may fail", "one more broker"),
    ),
    "no leader, the last one known": Case(
        topic(part(leader=None, isr=(), last=(2,)), up=(3,)),
        ("no replica is sure to have everything, and it waits for broker 2, which was in sync last.",),
    ),
    "the last leader has lost its disk": Case(
        topic(part(leader=None, isr=(), last=(2, 3))),
        (
            "the replica that was in sync last has lost its disk; `quire topics alter orders --set "
            "unclean.leader.election.enable=true` lets one of the brokers 2, 3 lead with what it has.",
        ),
    ),
    "no leader, the only in-sync replica down": Case(
        topic(part(leader=None, isr=(1,)), up=(2, 3), keeps_eligible=False), ("it waits for broker 1.",)
    ),
    "one replica": Case(
        topic(ALONE, up=(1,), brokers={1: None}, voters=(1,)),
        ("All partitions have a leader.", "If one more broker fails, partitions may have no leader"),
        ("acks=all", "Any"),
    ),
    "three racks": Case(topic(brokers=RACKS), ("Each of the 3 racks may fail, and clients keep reading and writing.",)),
    "two replicas in one rack": Case(
        topic(brokers={1: "east", 2: "east", 3: "west"}),
        ("Losing rack east leaves too few replicas in sync for acks=all.",),
        ("rack west", "takes the leaders"),
    ),
    "all replicas in one rack": Case(
        topic(part(replicas=(1, 2), isr=(1, 2)), part(1), brokers={1: "east", 2: "east", 3: "west"}),
        ("Losing rack east takes the leaders of partitions with it.",),
    ),
    "a rack with most controllers": Case(
        topic(brokers={1: "east", 2: "east", 3: "west"}, voters=(1, 2, 3)), ("Losing rack east takes the leaders",)
    ),
    "one rack": Case(topic(brokers={1: "east", 2: "east", 3: "east"}), ("All replicas",), ("rack",)),
}

CHANGES = {
    "nothing but the disks": Case(
        topic(), ("`quire topics alter orders --set flush.messages=1`",), ("min.insync", "Start", "rack", "eligible")
    ),
    "nothing at all": Case(topic(flush=1), ()),
    "one replica": Case(
        topic(ALONE, brokers={1: None}, up=(1,)),
        ("--replication-factor 3 --set min.insync.replicas=2` (it needs 3 brokers, and there is 1).",),
        ("alter orders --set min.insync",),
    ),
    "one required": Case(topic(min_isr=1), ("`quire topics alter orders --set min.insync.replicas=2`",)),
    "as many required as there are": Case(
        topic(min_isr=3), ("Let a broker fail without stopping acks=all", "min.insync.replicas=2`.")
    ),
    "two of two required": Case(
        topic(part(replicas=(1, 2), isr=(1, 2))), ("min.insync.replicas=1`, or better use three replicas.",)
    ),
    "more required than there are": Case(topic(min_isr=4), ("min.insync.replicas=4 counts as 3",)),
    "unclean elections": Case(topic(unclean=True), ("--set unclean.leader.election.enable=false`",)),
    "a broker down": Case(topic(part(isr=(1, 2)), up=(1, 2)), ("Start broker 3",)),
    "without eligible leader replicas": Case(topic(keeps_eligible=False), ("eligible.leader.replicas.version",)),
    "replicas in one of two racks": Case(
        topic(part(3, replicas=(1, 2), isr=(1, 2)), part(4), brokers={1: "east", 2: "east", 3: "west"}),
        ("Spread the replicas of partition 3 over more racks.",),
    ),
}


def check(sentences: list[str], case: Case) -> None:
    text = "\n".join(sentences)
    for wanted in case.said:
        assert wanted in text
    for unwanted in case.unsaid:
        assert unwanted not in text
    assert all(each.endswith(".") and "  " not in each for each in sentences)
    assert bool(sentences) or not case.said


@pytest.mark.parametrize("case", PROMISES.values(), ids=PROMISES)
def test_promises_follow_from_the_settings(case: Case) -> None:
    check(list(topic_promises.promises(case.topic)), case)


@pytest.mark.parametrize("case", NOW.values(), ids=NOW)
def test_what_survives_follows_from_the_state(case: Case) -> None:
    check(list(topic_promises.now(case.topic)), case)


@pytest.mark.parametrize("case", CHANGES.values(), ids=CHANGES)
def test_changes_are_commands(case: Case) -> None:
    sentences = list(topic_promises.changes(case.topic))
    check(sentences, case)
    assert bool(sentences) == bool(case.said)


# --- The tables of docs/guarantees.md

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "guarantees.md").read_text()
WITH_ACKS_ALL = re.findall(r"^\| all \| (\d) \| (.*?) \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
UNCLEAN = re.findall(r"^\| (\d) \| [^|]* \| ([^|]*) \|$", PAGE, re.MULTILINE)

NOTHING = "nothing"
FLUSHES = {
    "none": (NEVER, NEVER),
    "`flush.ms`": (NEVER, 500),
    "`flush.messages=N`": (1000, NEVER),
    "`flush.messages=1`": (1, NEVER),
}
"""With `flush.messages` and `flush.ms`."""
LOSSES = {
    "the last records": "may lose the last records, because",
    "the last `flush.ms`": "may lose the last records, those of about the last 500 ms",
    "fewer than N": "may lose fewer than 1,000 records of each partition (flush.messages).",
}
MACHINES = {1: "a failure of a single machine", 2: "a failure of 2 machines or more", 3: "a failure of all 3 machines"}
UNLESS_UNCLEAN = "while at least one in-sync replica stays up"


def flushed(flush: str, least: str, *, unclean: bool = False) -> TopicState:
    messages, ms = FLUSHES[flush]
    return topic(min_isr=int(least), flush=messages, flush_ms=ms, unclean=unclean)


def test_the_tables_have_every_combination() -> None:
    assert [row[:2] for row in WITH_ACKS_ALL] == [(least, flush) for least in "123" for flush in FLUSHES]
    assert [row[0] for row in UNCLEAN] == ["1", "2", "3"]


@pytest.mark.parametrize("row", WITH_ACKS_ALL, ids=" ".join)
def test_a_row_of_the_guarantees_is_what_is_promised(row: tuple[str, ...]) -> None:
    least, flush, killed, *power = row
    acks_all, failures, *_ = topic_promises.promises(flushed(flush, least))
    assert killed == NOTHING
    assert "survives any number of killed processes" in acks_all
    assert UNLESS_UNCLEAN not in acks_all
    costly = [machines for machines, cell in enumerate(power, 1) if cell != NOTHING]
    if costly:
        assert MACHINES[costly[0]] in failures
        assert LOSSES[power[-1]] in failures
        assert all(power[-1] == power[machines - 1].removesuffix("¹") for machines in costly)
    else:
        assert "none loses a record" in failures


@pytest.mark.parametrize("flush", FLUSHES)
@pytest.mark.parametrize("row", UNCLEAN, ids=" ".join)
def test_a_row_about_unclean_elections_is_what_is_promised(row: tuple[str, ...], flush: str) -> None:
    least, lost = row
    acks_all, failures, unclean, *_ = topic_promises.promises(flushed(flush, least, unclean=True))
    costs_more = lost != NOTHING
    assert (UNLESS_UNCLEAN in acks_all) == costs_more
    assert (UNLESS_UNCLEAN in failures or "An unclean election may lose more" in failures) == costs_more
    assert unclean.startswith("unclean.leader.election.enable is on")

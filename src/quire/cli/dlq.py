"""`quire dlq`: the records that pipelines could not use: which there are, why, and back with them to their topics."""

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

import click

from quire.cli.dlq_reading import (
    REPLAY_GROUP,
    Letter,
    dead_letter_topics,
    ends_of,
    places_of,
    read_letters,
    replayed_up_to,
    replays_are_forgotten_after_ms,
    some_are_older,
)
from quire.cli.lazy import Failure, HelpfulGroup
from quire.cli.options import IntRange, Pattern, cluster_options, connect, json_option
from quire.cli.output import count, print_json, print_table
from quire.cli.printable import printable
from quire.cli.record_format import iso_time
from quire.cli.terminal import echo
from quire.client.admin.topics import describe_topics
from quire.client.group_offsets import OffsetAndMetadata
from quire.client.offsets import TopicPartition
from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError, ErrorCode
from quire.spark.dead_letters import DeadLetter, headers_to_send_back

MOST_ATTEMPTS = 3
IN_ONE_TRANSACTION = 500
SHOWN_CHARACTERS = 100
DAY_MS = 24 * 60 * 60 * 1000
GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)


@click.group(cls=HelpfulGroup)
def dlq() -> None:
    """Look at dead letters, the records that pipelines could not use, and send them back."""


@dlq.command(
    "list",
    epilog="""\b
Examples:
  quire dlq list
  quire dlq list orders --json""",
)
@click.argument("topics", nargs=-1)
@json_option
@cluster_options
def list_letters(topics: Sequence[str], as_json: bool, servers: str, timeout_s: float) -> None:
    """Count dead letters by topic and error, and how many of them were not sent back yet."""
    rows = []
    with connect(servers, timeout_s) as client:
        for topic in dead_letter_topics(client, topics):
            places = places_of(client, [topic])
            replayed = replayed_up_to(client, places)
            total: Counter[str] = Counter()
            waiting: Counter[str] = Counter()
            for letter in read_letters(client, ends_of(client, places), {}):
                total[_error(letter)] += 1
                waiting[_error(letter)] += letter.record.offset >= replayed.get(letter.place, 0)
            rows += [(topic, number, waiting[error], error) for error, number in total.most_common()] or [
                (topic, 0, 0, "")
            ]
    if as_json:
        print_json([dict(zip(("topic", "letters", "waiting", "error"), row, strict=True)) for row in rows])
    elif rows:
        print_table(("topic", "letters", "waiting", "error"), rows)
    else:
        echo("There is no topic of dead letters.", err=True)


@dlq.command(
    epilog="""\b
Examples:
  quire dlq show orders
  quire dlq show orders -n 3 --error 'has_an_id' --json"""
)
@click.argument("topic")
@click.option("-n", "--count", "most", type=IntRange(min=1), default=10, show_default=True, help="At most so many.")
@click.option("--error", "pattern", type=Pattern(), help="Only those whose error has a match of this.")
@json_option
@cluster_options
def show(topic: str, most: int, pattern: re.Pattern[str] | None, as_json: bool, servers: str, timeout_s: float) -> None:
    """Show dead letters of TOPIC (or TOPIC.dlq) one by one: why, where from, and what was in them."""
    with connect(servers, timeout_s) as client:
        places = places_of(client, dead_letter_topics(client, [topic]))
        wanted = (letter for letter in read_letters(client, ends_of(client, places), {}) if _matches(letter, pattern))
        letters = list(islice(wanted, most))
    if as_json:
        print_json([_as_json(letter) for letter in letters])
        return
    for letter in letters:
        record, error = letter.record, printable(_error(letter))
        echo(f"{letter.place} offset {record.offset}, {iso_time(record.timestamp)}: {error}")
        if isinstance(letter.why, DeadLetter):
            why = letter.why
            echo(f"  from   {why.topic}-{why.partition} offset {why.offset}, attempt {why.attempt}")
        echo(f"  key    {_text(letter.record.key)}")
        echo(f"  value  {_text(letter.record.value)}")


@dlq.command(
    epilog="""\b
Examples:
  quire dlq replay orders                          after the job was repaired
  quire dlq replay orders --error 'has_a_price'
  quire dlq replay orders --from-beginning --max-attempts 10"""
)
@click.argument("topic")
@click.option("--error", "pattern", type=Pattern(), help="Only those whose error has a match of this.")
@click.option(
    "--max-attempts",
    type=IntRange(min=1),
    default=MOST_ATTEMPTS,
    show_default=True,
    help="Leave alone what has failed so often.",
)
@click.option("--from-beginning", is_flag=True, help="Also what was sent back or passed over before.")
@json_option
@cluster_options
def replay(
    topic: str,
    pattern: re.Pattern[str] | None,
    max_attempts: int,
    from_beginning: bool,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Send dead letters of TOPIC (or TOPIC.dlq) back to where they came from, each once, one attempt further.

    What is sent back and how far this has come are one transaction, so nothing is sent twice, whatever happens. What is
    passed over, because of its error, its attempts or a topic that is gone, is not looked at again without
    --from-beginning. Where it is not known any more what was sent back, nothing is until --from-beginning says so.
    """
    sent = passed_over = 0
    gone: dict[str, bool] = {}
    with connect(servers, timeout_s) as client:
        name = dead_letter_topics(client, [topic])[0]
        producer = Producer(client.cluster, ProducerConfig(transactional_id=f"{REPLAY_GROUP}-{name}"))
        client.run(producer.init_transactions())  # first: it ends what another replay has open
        places = places_of(client, [name])
        replayed = replayed_up_to(client, places)
        if not replayed and not from_beginning:
            _refuse_what_may_have_been_sent(client, name, places)
        elif replayed:
            # Keeps it from being forgotten, whether there are letters or not.
            _send_back(client, producer, [], replayed)
        ends = ends_of(client, places)
        letters = read_letters(client, ends, {} if from_beginning else replayed)
        while chunk := list(islice(letters, IN_ONE_TRANSACTION)):
            back = [letter for letter in chunk if _goes_back(letter, pattern, max_attempts)]
            back = [letter for letter in back if not _is_gone(client, _origin(letter), gone)]
            replayed |= _further(chunk, replayed)
            _send_back(client, producer, back, replayed)
            sent += len(back)
            passed_over += len(chunk) - len(back)
        if behind := {place: end for place, end in ends.items() if end > replayed.get(place, 0)}:
            # Behind the last letters are the markers of their transactions: unless these count as read, the group lags.
            _send_back(client, producer, [], replayed | behind)
        producer.close()
    if as_json:
        print_json({"topic": name, "sent": sent, "passed_over": passed_over})
    else:
        echo(f"{count(sent, 'dead letter')} sent back from {name}, {passed_over:,} passed over")


def _refuse_what_may_have_been_sent(client: BlockingClient, topic: str, places: list[TopicPartition]) -> None:
    """How far replays came is forgotten after a while; what was sent back before that is then older than that."""
    kept_ms = replays_are_forgotten_after_ms(client)
    if some_are_older(client, places, int(time.time() * 1000) - kept_ms):
        raise Failure(
            f"{topic} has dead letters older than the {kept_ms / DAY_MS:g} days for which it is known how far replays "
            "came (offsets.retention.minutes), so they may have been sent back before. Say --from-beginning to send "
            f"them all, or say where to begin: `quire groups reset-offsets {REPLAY_GROUP} --topic {topic} "
            "--by-duration P7D --execute`."
        )


def _send_back(
    client: BlockingClient, producer: Producer, back: list[Letter], replayed: Mapping[TopicPartition, int]
) -> None:
    """One transaction: the letters that go back, and how far all have been dealt with."""
    for topic in dict.fromkeys(_origin(letter) for letter in back):
        client.run(producer.prepare(topic))
    producer.begin()
    try:
        for letter in back:
            assert isinstance(letter.why, DeadLetter)
            known = client.cluster.metadata.topics[letter.why.topic].partitions
            producer.send(
                letter.why.topic,
                letter.record.value,
                key=letter.record.key,
                headers=headers_to_send_back(letter.record.headers),
                partition=letter.why.partition if letter.why.partition in known else None,
            )
        offsets = {place: OffsetAndMetadata(offset) for place, offset in replayed.items()}
        client.run(producer.send_offsets(REPLAY_GROUP, offsets))
        client.run(producer.commit())
    except BaseException:
        client.run(producer.abort())
        raise


def _further(chunk: list[Letter], replayed: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """How far replaying is after a chunk: never less far, or what was sent back before would be sent again."""
    furthest: dict[TopicPartition, int] = {}
    for letter in chunk:  # of a partition the last one counts, and comes last
        furthest[letter.place] = max(replayed.get(letter.place, 0), letter.record.offset + 1)
    return furthest


def _is_gone(client: BlockingClient, topic: str, known: dict[str, bool]) -> bool:
    """Whether a topic cannot be sent back to, ever. One letter of such a topic must not hold up all the others."""
    if topic not in known:
        found = client.run(describe_topics(client.cluster, [topic]))[topic]
        known[topic] = isinstance(found, ApiError) and found.code in GONE
        if known[topic]:
            echo(f"quire: topic {topic} does not exist; its dead letters are passed over.", err=True)
    return known[topic]


def _origin(letter: Letter) -> str:
    assert isinstance(letter.why, DeadLetter)
    return letter.why.topic


def _goes_back(letter: Letter, pattern: re.Pattern[str] | None, max_attempts: int) -> bool:
    return isinstance(letter.why, DeadLetter) and letter.why.attempt < max_attempts and _matches(letter, pattern)


def _matches(letter: Letter, pattern: re.Pattern[str] | None) -> bool:
    return pattern is None or pattern.search(_error(letter)) is not None


def _error(letter: Letter) -> str:
    return letter.why if isinstance(letter.why, str) else letter.why.error


def _text(content: bytes | None) -> str:
    if content is None:
        return "null"
    text = printable(content.decode(errors="backslashreplace"))
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}... ({len(content):,} bytes)"


def _as_json(letter: Letter) -> dict[str, object]:
    origin = letter.why._asdict() if isinstance(letter.why, DeadLetter) else {"error": letter.why}
    return {
        "place": {"topic": letter.place.topic, "partition": letter.place.partition, "offset": letter.record.offset},
        "timestamp": letter.record.timestamp,
        **{("from_topic" if name == "topic" else name): value for name, value in origin.items()},
        "key": None if letter.record.key is None else letter.record.key.decode(errors="backslashreplace"),
        "value": None if letter.record.value is None else letter.record.value.decode(errors="backslashreplace"),
    }

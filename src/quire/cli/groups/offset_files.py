"""Offsets in a file, one line per partition: `TOPIC,PARTITION,OFFSET`, as Kafka's own tool writes and reads them.

In a file for several groups, each line begins with the group.
"""

import csv
from collections.abc import Iterable, Mapping
from io import StringIO

from quire.client.offsets import TopicPartition
from quire.console.failure import EXIT_USAGE, Failure


def parse_offsets(lines: Iterable[str], group: str) -> dict[TopicPartition, int]:
    """The offsets that the lines give for this group; a failure names the line that is not valid."""
    offsets: dict[TopicPartition, int] = {}
    try:
        rows = list(csv.reader(lines, skipinitialspace=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise Failure(f"the file is not lines of TOPIC,PARTITION,OFFSET ({error}).", EXIT_USAGE) from None
    for number, row in enumerate(rows, 1):
        if not row or (number == 1 and row[-3:] == ["topic", "partition", "offset"]):
            continue
        if len(row) not in (3, 4) or not all(part.isascii() and part.isdigit() for part in row[-2:]):
            raise Failure(f"line {number} of the file is not TOPIC,PARTITION,OFFSET but {','.join(row)!r}.", EXIT_USAGE)
        if len(row) == 3 or row[0] == group:
            offsets[TopicPartition(row[-3], int(row[-2]))] = int(row[-1])
    if not offsets:
        raise Failure(f"the file has no line for group {group}; write TOPIC,PARTITION,OFFSET.", EXIT_USAGE)
    return offsets


def format_offsets(offsets: Mapping[TopicPartition, int]) -> str:
    text = StringIO()
    rows = ((*topic_partition, offset) for topic_partition, offset in offsets.items())
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()

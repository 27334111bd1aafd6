"""What the queries of pipelines report: throughput, lag, state, and counts that add up.

Spark reports every completed micro-batch to a StreamingQueryListener. `QueryReport` has the relevant part of a report;
`Tally` adds it up over all batches of a query. Both are pure. A tally knows the last batch that it counted: a batch
that is reported twice counts once, and a batch that was never reported (the process died right after it) is counted as
missed, so that the tally is known to be incomplete.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

READ = "read"
"""A query whose source is read by several branches observes its rows under this name (`rows`): Spark counts each."""


@dataclass(frozen=True, slots=True)
class QueryReport:
    """One completed micro-batch."""

    batch_id: int
    rows: int
    rows_per_second: float
    batch_ms: int
    offsets: Mapping[tuple[str, int], int]
    """The offsets up to which the sources were read, by topic and partition."""
    state_rows: int
    state_bytes: int
    late: int
    duplicates: int
    watermark: str
    counts: Mapping[str, int]

    @classmethod
    def from_progress(cls, progress: Mapping[str, Any]) -> "QueryReport":
        """Reads Spark's JSON of a StreamingQueryProgress."""
        sources = progress.get("sources", [])
        operators = progress.get("stateOperators", [])
        observed = dict(progress.get("observedMetrics", {}))
        read = observed.pop(READ, {})
        return cls(
            batch_id=progress["batchId"],
            rows=int(read.get("rows", progress["numInputRows"])),
            rows_per_second=float(progress.get("inputRowsPerSecond") or 0.0),
            batch_ms=progress.get("durationMs", {}).get("triggerExecution", 0),
            offsets={partition: at for source in sources for partition, at in source_offsets(source.get("endOffset"))},
            state_rows=sum(operator["numRowsTotal"] for operator in operators),
            state_bytes=sum(operator["memoryUsedBytes"] for operator in operators),
            late=sum(operator["numRowsDroppedByWatermark"] for operator in operators),
            duplicates=sum(operator["customMetrics"].get("numDroppedDuplicateRows", 0) for operator in operators),
            watermark=progress.get("eventTime", {}).get("watermark", ""),
            counts=_sums(observed.values()),
        )


def _sums(observed: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Several parts of a query may count the same thing, as each `sink_rows` counts its dead letters."""
    sums: dict[str, int] = {}
    for metrics in observed:
        for name, value in metrics.items():
            sums[name] = sums.get(name, 0) + int(value or 0)
    return sums


def source_offsets(found: object) -> Iterator[tuple[tuple[str, int], int]]:
    """Offsets by topic and partition, as `format("quire")` writes them; empty for another source.

    Partitions that were deleted are left out.
    """
    for topic, part in found.items() if isinstance(found, dict) else ():
        if isinstance(part, dict) and isinstance(part.get("offsets"), dict):
            gone = part.get("gone", [])
            for partition, offset in part["offsets"].items():
                if int(partition) not in gone:
                    yield (topic, int(partition)), int(offset)


@dataclass(slots=True)
class Tally:
    """The sums over all batches of a query."""

    last_batch: int = -1
    batches: int = 0
    missed: int = 0
    rows: int = 0
    late: int = 0
    duplicates: int = 0
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, report: QueryReport) -> None:
        if report.batch_id <= self.last_batch:
            return
        self.missed += report.batch_id - self.last_batch - 1
        self.last_batch = report.batch_id
        self.batches += 1
        self.rows += report.rows
        self.late += report.late
        self.duplicates += report.duplicates
        for name, number in report.counts.items():
            self.counts[name] = self.counts.get(name, 0) + number

    def done_up_to(self, batch_id: int) -> None:
        """The checkpoint has this batch as done: a batch up to it that was not reported will never be."""
        if batch_id > self.last_batch:
            self.missed += batch_id - self.last_batch
            self.last_batch = batch_id

    def __sub__(self, before: "Tally") -> "Tally":
        """The difference to an earlier tally."""
        return Tally(
            self.last_batch,
            self.batches - before.batches,
            self.missed - before.missed,
            self.rows - before.rows,
            self.late - before.late,
            self.duplicates - before.duplicates,
            {name: number - before.counts.get(name, 0) for name, number in self.counts.items()},
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Tally":
        return cls(**content)

    def accounts(self) -> dict[str, int]:
        """How the rows of a query were counted; the counts add up to `rows`."""
        return self.counts | {"duplicates": self.duplicates, "late": self.late}

    @property
    def adds_up(self) -> bool:
        return not self.missed and sum(self.accounts().values()) == self.rows

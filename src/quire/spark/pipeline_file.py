"""The YAML file of a pipeline: its topics, its queries, and the processes that run beside them.

    name: shop
    about: Sales, top products and sessions of a shop
    topics:                                 # created if they are missing
      shop_events: {partitions: 3}
    queries:                                # run in this order
      clean:
        job: pipelines.shop.clean:clean     # module:function, a DataFrame in and a DataFrame out
        source: {subscribe: "product_viewed,add_to_cart", maxOffsetsPerTrigger: 20000}
        sink: {format: quire}               # with options of the sink, or: {delta: shop/events, partition_by: [date]}
        trigger: 1 second
        checkpoint: /elsewhere/clean        # by default in the folder of the pipelines' state
    processes:                              # not Spark's; stopped with SIGTERM when the pipeline stops
      processor: [python, -m, some.module, -b, "{servers}"]

What is not known is refused with the nearest name that is. Paths of Delta tables are below the state's folder `lake`
unless they are absolute.
"""

import difflib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

QUIRE = "quire"
DEFAULT_TRIGGER = "1 second"


class PipelineFileError(Exception):
    """The file is not a valid pipeline; the text says where, and what to write instead."""


@dataclass(frozen=True, slots=True)
class QuireSinkSpec:
    """Writes to topics: given by a column `topic`, or by an option."""

    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeltaSinkSpec:
    """Writes to a Delta table, each batch once."""

    table: str
    partition_by: tuple[str, ...] = ()
    compact_every: int = 20


@dataclass(frozen=True, slots=True)
class QuerySpec:
    name: str
    job: str
    source: Mapping[str, str]
    sink: QuireSinkSpec | DeltaSinkSpec
    trigger: str = DEFAULT_TRIGGER
    checkpoint: str | None = None


@dataclass(frozen=True, slots=True)
class TopicSpec:
    name: str
    partitions: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pipeline:
    name: str
    about: str
    path: str
    topics: tuple[TopicSpec, ...]
    queries: tuple[QuerySpec, ...]
    processes: Mapping[str, tuple[str, ...]]


def load_pipeline(path: str) -> Pipeline:
    import yaml

    try:
        with open(path, encoding="utf-8") as file:
            content = yaml.safe_load(file)
    except OSError as error:
        raise PipelineFileError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise PipelineFileError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    return parse_pipeline(content, path)


def find_pipelines(folder: str) -> list[Pipeline]:
    """The files NAME.yaml in the folder and its direct subfolders; a file that is not a pipeline is an error."""
    folders = (
        [folder, *sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())] if os.path.isdir(folder) else []
    )
    paths = [
        os.path.join(each, name)
        for each in folders
        for name in sorted(os.listdir(each))
        if name.endswith((".yaml", ".yml"))
    ]
    return [load_pipeline(path) for path in paths]


def parse_pipeline(content: object, path: str) -> Pipeline:
    top = _Section(content, path)
    top.allow("name", "about", "topics", "queries", "processes")
    topics = top.section("topics")
    queries = top.section("queries")
    pipeline = Pipeline(
        name=_name(top.text("name"), f"{path}: name"),
        about=top.text("about", ""),
        path=path,
        topics=tuple(_topic(name, topics.section(name)) for name in topics.content),
        queries=tuple(_query(name, queries.section(name)) for name in queries.content),
        processes={name: top.section("processes").texts(name) for name in top.section("processes").content},
    )
    if not pipeline.queries and not pipeline.processes:
        raise PipelineFileError(f"{path}: a pipeline has queries or processes, and this one has neither")
    return pipeline


def results_of(pipeline: Pipeline) -> list[str]:
    """The topics of its file that it writes: those that no query reads, or that the sink of an earlier query names."""
    results = []
    for topic in pipeline.topics:
        readers = [index for index, query in enumerate(pipeline.queries) if reads(query, topic.name)]
        earlier = pipeline.queries[: readers[0]] if readers else pipeline.queries
        if not readers or any(topic.name in _named_by(query.sink) for query in earlier):
            results.append(topic.name)
    return results


def reads(query: QuerySpec, topic: str) -> bool:
    """Whether the source's options select a topic, in any of the three ways."""
    given = {name.lower(): value for name, value in query.source.items()}
    if topic in (name.strip() for name in given.get("subscribe", "").split(",")):
        return True
    try:
        by_pattern = re.fullmatch(given["subscribepattern"], topic) if "subscribepattern" in given else None
        return by_pattern is not None or topic in json.loads(given.get("assign", "{}"))
    except (re.error, ValueError, TypeError):
        return False  # the source reports the error


def _named_by(sink: QuireSinkSpec | DeltaSinkSpec) -> list[str]:
    options = sink.options if isinstance(sink, QuireSinkSpec) else {}
    return [value for name, value in options.items() if name.lower() in ("topic", "sink")]


def _topic(name: str, given: "_Section") -> TopicSpec:
    given.allow("partitions", "configs")
    return TopicSpec(name, given.number("partitions", -1), given.section("configs").as_options())


def _query(name: str, given: "_Section") -> QuerySpec:
    given.allow("job", "source", "sink", "trigger", "checkpoint")
    job = given.text("job")
    if job.count(":") != 1:
        raise PipelineFileError(f"{given.location}: job is module:function, not {job!r}")
    return QuerySpec(
        _name(name, given.location),
        job,
        given.section("source").as_options(),
        _sink(given.section("sink")),
        given.text("trigger", DEFAULT_TRIGGER),
        given.text("checkpoint", "") or None,
    )


def _sink(given: "_Section") -> QuireSinkSpec | DeltaSinkSpec:
    if "delta" in given.content:
        given.allow("delta", "partition_by", "compact_every")
        return DeltaSinkSpec(given.text("delta"), given.texts("partition_by"), given.number("compact_every", 20))
    if given.text("format", "") != QUIRE:
        raise PipelineFileError(f"{given.location}: a sink has `format: quire`, or `delta:` and the path of a table")
    return QuireSinkSpec({name: value for name, value in given.as_options().items() if name != "format"})


def _name(name: str, location: str) -> str:
    if not name or not all(letter.isalnum() or letter in "-_" for letter in name) or not name.isascii():
        raise PipelineFileError(f"{location}: a name has letters, digits, '-' and '_', and {name!r} does not")
    return name


class _Section:
    """A mapping in the file, and its position for error messages."""

    def __init__(self, content: object, location: str) -> None:
        if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
            raise PipelineFileError(f"{location}: names and values are expected, not {content!r}")
        self.content: dict[str, Any] = content
        self.location = location

    def allow(self, *names: str) -> None:
        for name in self.content:
            if name not in names:
                raise PipelineFileError(f"{self.location}: there is no {name!r}{_nearest(name, names)}")

    def section(self, name: str) -> "_Section":
        return _Section(self.content.get(name) or {}, f"{self.location}: {name}")

    def text(self, name: str, default: str | None = None) -> str:
        value = self.content.get(name, default)
        if value is None:
            raise PipelineFileError(f"{self.location}: {name!r} is missing")
        if not isinstance(value, str):
            raise PipelineFileError(f"{self.location}: {name} is a text, not {value!r}")
        return value

    def number(self, name: str, default: int) -> int:
        value = self.content.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise PipelineFileError(f"{self.location}: {name} is a whole number, not {value!r}")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.content.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise PipelineFileError(f"{self.location}: {name} is a list of texts, not {value!r}")
        return tuple(value)

    def as_options(self) -> dict[str, str]:
        """The values as text, as options need them."""
        options = {}
        for name, value in self.content.items():
            if not isinstance(value, (str, int, float)):
                raise PipelineFileError(f"{self.location}: {name} is a text or a number, not {value!r}")
            options[name] = str(value).lower() if isinstance(value, bool) else str(value)
        return options


def _nearest(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(names), 1)
    return f"; did you mean {close[0]!r}?" if close else f", only {', '.join(names)}"

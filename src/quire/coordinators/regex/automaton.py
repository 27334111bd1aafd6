"""Follows every path of a regular expression at once: the time a name takes depends on its length alone.

The tree becomes a program of a few simple steps (a non-deterministic automaton). Where the program can be after some
characters is a set of its steps; each such set is looked up once for each next character and remembered (a
deterministic automaton, made as it is needed). An expression can be written so that this never repeats itself: what
has to be looked up is therefore limited too, and an expression that reaches the limit is refused.
"""

from collections.abc import Iterable

from quire.coordinators.regex.characters import TOPIC_NAMES, Alphabet
from quire.coordinators.regex.syntax import (
    Assertion,
    Chars,
    Choice,
    Node,
    RegexError,
    Repeat,
    Sequence,
    parse,
)

LONGEST_PROGRAM = 10_000
MOST_WORK = 100_000
"""Steps visited while sets are looked up: some 25 ms of the node's only thread. Reading the longest expression and
making the longest program of it take about as long. Who subscribes by names has no use for more than a hundredth."""

MOST_PLACES = 10_000
"""What is remembered is forgotten from time to time: topics come and go, and with them what was looked up."""

_MATCH = -1
_END = 0
"""The bit of the character after the last one."""


class _Place:
    """Where the program can be, and what the last character was (its bit; None before the first)."""

    __slots__ = ("accepts", "last", "next", "steps")

    def __init__(self, steps: tuple[int, ...], last: int | None) -> None:
        self.steps = steps
        self.last = last
        self.next: dict[str, _Place] = {}
        self.accepts: bool | None = None


_NOWHERE = _Place((), None)


class Regex:
    """An expression, ready to be asked about names that are made of the characters of an alphabet."""

    def __init__(self, text: str, alphabet: Alphabet) -> None:
        self.text = text
        self._bits = alphabet.bits
        self._word = alphabet.word
        self._work = 0
        # A step is (mask, following) for a character, (assertion, following), or (None, several) to go on at each.
        self._program: list[tuple[int | str | None, tuple[int, ...]]] = []
        self._first_step = self._compile(parse(text, alphabet), _MATCH)
        self._places: dict[tuple[tuple[int, ...], bool | None], _Place] = {}
        self._forget()

    def matching(self, names: Iterable[str]) -> list[str]:
        """Those that match. The limit is on all of them together, so it holds whoever asks how often."""
        self._work = 0
        if len(self._places) > MOST_PLACES:
            self._forget()
        try:
            return [name for name in names if self.matches(name)]
        except RegexError:
            self._forget()
            raise

    def matches(self, name: str) -> bool:
        """Whether the whole of `name` is what the expression says. RegexError when that is not found
        out within the limit."""
        place = self._start
        for character in name:
            following = place.next.get(character)
            place = following if following is not None else self._follow(place, character)
            if place is _NOWHERE:
                return False
        if place.accepts is None:
            place.accepts = _MATCH in self._reach(place, _END)
        return place.accepts

    # Running

    def _forget(self) -> None:
        self._places.clear()
        self._start = self._place((self._first_step,), None)

    def _follow(self, place: _Place, character: str) -> _Place:
        bit = self._bits.get(character, 0)
        steps: dict[int, None] = {}
        for step in self._reach(place, bit):
            if step != _MATCH:
                mask, following = self._program[step]
                if isinstance(mask, int) and mask & bit:
                    steps[following[0]] = None
        reached = place.next[character] = self._place(tuple(sorted(steps)), bit) if steps else _NOWHERE
        return reached

    def _place(self, steps: tuple[int, ...], last: int | None) -> _Place:
        # Of the character before only this much matters to what comes after it.
        key = steps, None if last is None else bool(last & self._word)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = _Place(steps, last)
        return place

    def _reach(self, place: _Place, upcoming: int) -> dict[int, None]:
        """All steps that wait for a character, and the match, as far as one gets between two characters."""
        reached: dict[int, None] = {}
        seen = set(place.steps)
        waiting = list(place.steps)
        while waiting:
            step = waiting.pop()
            self._work += 1
            if step == _MATCH:
                reached[step] = None
                continue
            condition, following = self._program[step]
            if isinstance(condition, int):
                reached[step] = None
            elif condition is None or _holds(condition, place.last, upcoming, self._word):
                for each in following:
                    if each not in seen:
                        seen.add(each)
                        waiting.append(each)
        if self._work > MOST_WORK:
            raise RegexError("takes too long to match; use fewer repetitions of what can be read in many ways")
        return reached

    # Compiling, from the end to the beginning: `following` is where a part goes on

    def _compile(self, node: Node, following: int) -> int:
        match node:
            case Chars(mask):
                return self._step(mask, following)
            case Assertion(kind):
                return self._step(kind, following)
            case Sequence(parts):
                for part in reversed(parts):
                    following = self._compile(part, following)
                return following
            case Choice(options):
                return self._step(None, *(self._compile(option, following) for option in options))
            case Repeat(repeated, least, most):
                return self._compile_repeat(repeated, least, most, following)

    def _compile_repeat(self, node: Node, least: int, most: int | None, following: int) -> int:
        if most is None:
            loop = self._step(None, following)
            self._program[loop] = (None, (self._compile(node, loop), following))
            entry = loop
        else:
            entry = following
            for _ in range(most - least):
                entry = self._step(None, self._compile(node, entry), following)
        for _ in range(least):
            entry = self._compile(node, entry)
        return entry

    def _step(self, condition: int | str | None, *following: int) -> int:
        if len(self._program) >= LONGEST_PROGRAM:
            raise RegexError("expression is too large; use fewer or smaller repetitions")
        self._program.append((condition, following))
        return len(self._program) - 1


class TopicRegex(Regex):
    """About topic names."""

    def __init__(self, text: str) -> None:
        super().__init__(text, TOPIC_NAMES)


def _holds(assertion: str, last: int | None, upcoming: int, word: int) -> bool:
    if assertion == "begin":
        return last is None
    if assertion == "end":
        return upcoming == _END
    at_boundary = bool((last or 0) & word) != bool(upcoming & word)
    return at_boundary == (assertion == "boundary")

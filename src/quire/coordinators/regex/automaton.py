"""Matches a regular expression by following all its paths at once, in time that is linear in the length of the name.

The tree is compiled to a program of simple steps (a nondeterministic automaton). The steps that the program may be at
after some characters are a set. The successor of each set by each character is computed once and cached (a lazily built
deterministic automaton). An expression can be written so that sets never repeat. Therefore the work is limited too, and
an expression that reaches the limit is refused.
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
"""Steps visited while sets are computed: about 25 ms of the node's single thread. Parsing and compiling the longest
expression take about as long. Usual expressions need less than a hundredth."""

MOST_SETS = 10_000
"""The cache is cleared when it has more sets, because names of deleted topics are no longer needed."""

_MATCH = -1
_END = 0
"""The bit of the end of the name."""


class _StepSet:
    """The steps that the program may be at, and the bit of the last character (None before the first)."""

    __slots__ = ("accepts", "last", "next", "steps")

    def __init__(self, steps: tuple[int, ...], last: int | None) -> None:
        self.steps = steps
        self.last = last
        self.next: dict[str, _StepSet] = {}
        self.accepts: bool | None = None


_NO_STEPS = _StepSet((), None)


class Regex:
    """A compiled expression for names over an alphabet."""

    def __init__(self, text: str, alphabet: Alphabet) -> None:
        self.text = text
        self._bits = alphabet.bits
        self._word = alphabet.word
        self._work = 0
        # A step is (mask, following) for a character, (assertion, following), or (None, several) for a branch.
        self._program: list[tuple[int | str | None, tuple[int, ...]]] = []
        self._first_step = self._compile(parse(text, alphabet), _MATCH)
        self._sets: dict[tuple[tuple[int, ...], bool | None], _StepSet] = {}
        self._forget()

    def matching(self, names: Iterable[str]) -> list[str]:
        """The names that match. The limit of work applies to all of them together."""
        self._work = 0
        if len(self._sets) > MOST_SETS:
            self._forget()
        try:
            return [name for name in names if self.matches(name)]
        except RegexError:
            self._forget()
            raise

    def matches(self, name: str) -> bool:
        """Whether the whole name matches. RegexError if that takes more work than the limit."""
        current = self._start
        for character in name:
            following = current.next.get(character)
            current = following if following is not None else self._follow(current, character)
            if current is _NO_STEPS:
                return False
        if current.accepts is None:
            current.accepts = _MATCH in self._reach(current, _END)
        return current.accepts

    # --- Matching

    def _forget(self) -> None:
        self._sets.clear()
        self._start = self._step_set((self._first_step,), None)

    def _follow(self, current: _StepSet, character: str) -> _StepSet:
        bit = self._bits.get(character, 0)
        steps: dict[int, None] = {}
        for step in self._reach(current, bit):
            if step != _MATCH:
                mask, following = self._program[step]
                if isinstance(mask, int) and mask & bit:
                    steps[following[0]] = None
        reached = current.next[character] = self._step_set(tuple(sorted(steps)), bit) if steps else _NO_STEPS
        return reached

    def _step_set(self, steps: tuple[int, ...], last: int | None) -> _StepSet:
        # All that later steps need of the last character is whether it is a word character.
        key = steps, None if last is None else bool(last & self._word)
        current = self._sets.get(key)
        if current is None:
            current = self._sets[key] = _StepSet(steps, last)
        return current

    def _reach(self, current: _StepSet, upcoming: int) -> dict[int, None]:
        """The steps that can be reached without a character: those that need one, and the match."""
        reached: dict[int, None] = {}
        seen = set(current.steps)
        waiting = list(current.steps)
        while waiting:
            step = waiting.pop()
            self._work += 1
            if step == _MATCH:
                reached[step] = None
                continue
            condition, following = self._program[step]
            if isinstance(condition, int):
                reached[step] = None
            elif condition is None or _holds(condition, current.last, upcoming, self._word):
                for each in following:
                    if each not in seen:
                        seen.add(each)
                        waiting.append(each)
        if self._work > MOST_WORK:
            raise RegexError("takes too long to match; use fewer ambiguous repetitions")
        return reached

    # --- Compiling, from the end to the beginning. `following` is the step after a part

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
    """For topic names."""

    def __init__(self, text: str) -> None:
        super().__init__(text, TOPIC_NAMES)


def _holds(assertion: str, last: int | None, upcoming: int, word: int) -> bool:
    if assertion == "begin":
        return last is None
    if assertion == "end":
        return upcoming == _END
    at_boundary = bool((last or 0) & word) != bool(upcoming & word)
    return at_boundary == (assertion == "boundary")

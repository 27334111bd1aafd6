"""Parses a regular expression in the syntax of RE2 into a tree.

It supports all of RE2 except scripts other than Latin and Common. Backreferences and lookarounds, which RE2 does not
have, are refused as in RE2. Lazy and greedy repetitions are the same for a match of the whole name.
"""

from typing import NamedTuple

from quire.coordinators.regex.characters import Alphabet

LONGEST_TEXT = 10_000
MOST_REPEATS = 1000
DEEPEST_NESTING = 100
_SIMPLE_ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL = "01234567"
_HEX = "0123456789abcdefABCDEF"


class RegexError(Exception):
    """The expression is not valid in RE2. The message says why and where."""


class Chars(NamedTuple):
    """One character of a set."""

    mask: int


class Sequence(NamedTuple):
    parts: "list[Node]"


class Choice(NamedTuple):
    options: "list[Node]"


class Repeat(NamedTuple):
    """`most` is None if there is no limit."""

    node: "Node"
    least: int
    most: int | None


class Assertion(NamedTuple):
    """A position instead of a character: `begin`, `end`, `boundary` of a word, or `inside` (no boundary)."""

    kind: str


Node = Chars | Sequence | Choice | Repeat | Assertion


def parse(text: str, alphabet: Alphabet) -> Node:
    if len(text) > LONGEST_TEXT:
        raise RegexError(f"expression is too long: {len(text)} characters, and at most {LONGEST_TEXT} are read")
    parser = _Parser(text, alphabet)
    node = parser.choice(depth=0)
    if not parser.at_end:
        raise RegexError(f"unexpected ): `{text}`")
    return node


class _Parser:
    def __init__(self, text: str, alphabet: Alphabet) -> None:
        self._text = text
        self._alphabet = alphabet
        self._at = 0
        self._ignores_case = False
        self._group_names: list[str] = []

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._text)

    def choice(self, depth: int) -> Node:
        if depth > DEEPEST_NESTING:
            raise RegexError(f"expression nests too deeply: at most {DEEPEST_NESTING} groups in each other")
        options = [self._sequence(depth)]
        while self._took("|"):
            options.append(self._sequence(depth))
        return options[0] if len(options) == 1 else Choice(options)

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while not self.at_end and self._peek() not in "|)":
            if self._took("\\Q"):
                parts += [self._literal(character) for character in self._quoted()]
            elif (part := self._atom(depth)) is not None:
                parts.append(part)
            if parts:
                parts[-1] = self._repeated(parts[-1])
        return parts[0] if len(parts) == 1 else Sequence(parts)

    # --- Repetition

    def _repeated(self, node: Node) -> Node:
        start = self._at
        counts = self._quantifier()
        if counts is None:
            return node
        first = self._text[start : self._at]
        again = self._at
        if self._quantifier() is not None:
            raise RegexError(f"invalid nested repetition operator: `{first}{self._text[again : self._at]}`")
        return Repeat(node, *counts)

    def _quantifier(self) -> tuple[int, int | None] | None:
        counts: tuple[int, int | None] | None
        if self._took("*"):
            counts = 0, None
        elif self._took("+"):
            counts = 1, None
        elif self._took("?"):
            counts = 0, 1
        else:
            counts = self._counted()
        if counts is not None:
            self._took("?")
        return counts

    def _counted(self) -> tuple[int, int | None] | None:
        """`{2}`, `{2,}` or `{2,3}`. Any other brace is a literal character."""
        if self.at_end or self._peek() != "{":
            return None
        end = self._text.find("}", self._at)
        least, comma, most = self._text[self._at + 1 : end].partition(",") if end > 0 else ("", "", "")
        if not _is_number(least) or not (most == "" or _is_number(most)):
            return None
        whole = self._text[self._at : end + 1]
        self._at = end + 1
        low = int(least)
        high = low if not comma else int(most) if most else None
        if low > MOST_REPEATS or (high is not None and not low <= high <= MOST_REPEATS):
            raise RegexError(f"invalid repeat count: `{whole}`")
        return low, high

    # --- Characters, assertions and groups

    def _atom(self, depth: int) -> Node | None:
        character = self._next()
        match character:
            case "(":
                return self._group(depth)
            case "[":
                return self._class()
            case ".":
                return Chars(self._alphabet.dot)
            case "^":
                return Assertion("begin")
            case "$":
                return Assertion("end")
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                raise RegexError(f"missing argument to repetition operator: `{character}`")
            case "{":
                self._at -= 1
                if self._counted() is not None:
                    raise RegexError("missing argument to repetition operator: `{`")
                self._at += 1
        return self._literal(character)

    def _literal(self, character: str) -> Chars:
        return self._chars(self._alphabet.mask_of(character))

    def _chars(self, mask: int) -> Chars:
        return Chars(self._alphabet.either_case(mask) if self._ignores_case else mask)

    def _quoted(self) -> str:
        end = self._text.find("\\E", self._at)
        if end < 0:
            end = len(self._text)
        quoted, self._at = self._text[self._at : end], min(end + 2, len(self._text))
        return quoted

    def _group(self, depth: int) -> Node | None:
        """None for flags without a group."""
        ignored_case = self._ignores_case
        if self._took("?") and not self._named() and not self._flags():
            return None
        node = self.choice(depth + 1)
        if not self._took(")"):
            raise RegexError(f"missing closing ): `{self._text}`")
        self._ignores_case = ignored_case
        return node

    def _named(self) -> bool:
        start = self._at
        if not (self._took("P<") or (self._took("<") and not self.at_end and self._peek() not in "=!")):
            self._at = start
            return False
        end = self._text.find(">", self._at)
        name = self._text[self._at : end] if end >= 0 else ""
        if not name or not name.isascii() or not name.replace("_", "a").isalnum():
            raise RegexError(f"invalid named capture: `(?{self._text[start : end + 1 if end >= 0 else None]}`")
        if name in self._group_names:
            raise RegexError(f"duplicate capture group name: `{name}`")
        self._group_names.append(name)
        self._at = end + 1
        return True

    def _flags(self) -> bool:
        """Parses `i-s:` or `i)`. Returns whether a group follows; if not, they apply to the rest of this group."""
        start, ignores_case, negative, seen = self._at, self._ignores_case, False, False
        while not self.at_end:
            character = self._next()
            if character in ":)" and (seen or (character == ":" and not negative)):
                self._ignores_case = ignores_case
                return character == ":"
            if character == "i":
                ignores_case = not negative
            elif character == "-" and not negative:
                negative, seen = True, False
                continue
            elif character not in "msU":
                break
            seen = True
        raise RegexError(f"invalid or unsupported Perl syntax: `(?{self._text[start : self._at]}`")

    def _escape(self) -> Node:
        if self.at_end:
            raise RegexError("trailing \\ at end of expression: ``")
        character = self._peek()
        assertions = {"A": "begin", "z": "end", "b": "boundary", "B": "inside"}
        if character in assertions:
            self._at += 1
            return Assertion(assertions[character])
        if character == "C":
            self._at += 1
            return Chars(self._alphabet.every)
        named = self._named_class()
        if named is None:
            named = self._alphabet.mask_of(self._escaped_character())
        return self._chars(named)

    def _named_class(self) -> int | None:
        """After a backslash: `d`, `pN`, `p{Lu}` and their negations."""
        character = self._peek()
        if character in self._alphabet.perl:
            self._at += 1
            return self._alphabet.perl[character]
        if character not in "pP":
            return None
        start, self._at = self._at, self._at + 1
        if self._took("{"):
            end = self._text.find("}", self._at)
            name = self._text[self._at : end] if end >= 0 else ""
            self._at = end + 1 if end >= 0 else len(self._text)
        else:
            name = self._next() if not self.at_end else ""
        opposite = name.startswith("^") != (character == "P")
        mask = self._alphabet.unicode_class(name.removeprefix("^"))
        if mask is None:
            raise RegexError(f"invalid character class range: `\\{self._text[start : self._at]}`")
        return self._alphabet.every & ~mask if opposite else mask

    def _escaped_character(self) -> str:
        """After a backslash: one character. `\\1` would be a backreference, which RE2 does not have."""
        start = self._at
        character = self._next()
        if character in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[character]
        if character == "0" or (character in _OCTAL and not self.at_end and self._peek() in _OCTAL):
            number = character + self._while(_OCTAL, 2)
            return chr(int(number, 8))
        if character == "x" and (code := self._hex()) is not None:
            return chr(code)
        if character.isascii() and not character.isalnum():
            return character
        raise RegexError(f"invalid escape sequence: `\\{self._text[start : self._at]}`")

    def _hex(self) -> int | None:
        if self._took("{"):
            number = self._while(_HEX, 8)
            code = int(number, 16) if number and self._took("}") else -1
        else:
            number = self._while(_HEX, 2)
            code = int(number, 16) if len(number) == 2 else -1
        return code if 0 <= code <= 0x10FFFF else None

    # --- Character classes

    def _class(self) -> Node:
        start = self._at - 1
        opposite = self._took("^")
        # A closing bracket in the first position is a literal character.
        mask = self._class_item(start)
        while not self._took("]"):
            mask |= self._class_item(start)
        if self._ignores_case:
            mask = self._alphabet.either_case(mask)
        return Chars(self._alphabet.every & ~mask if opposite else mask)

    def _class_item(self, class_start: int) -> int:
        if self.at_end:
            raise RegexError(f"missing closing ]: `{self._text[class_start:]}`")
        if self._text.startswith("[:", self._at) and (end := self._text.find(":]", self._at)) >= 0:
            return self._posix(end)
        if self._peek() == "\\" and self._at + 1 < len(self._text):
            self._at += 1
            named = self._named_class()
            if named is not None:
                return named
            self._at -= 1
        start = self._at
        low = self._class_character()
        if not self._text.startswith("-", self._at) or self._text.startswith("-]", self._at):
            return self._alphabet.mask_of(low)
        self._at += 1
        high = self._class_character() if not self.at_end else ""
        if high < low:
            raise RegexError(f"invalid character class range: `{self._text[start : self._at]}`")
        return self._alphabet.mask_of_range(low, high)

    def _posix(self, end: int) -> int:
        name = self._text[self._at + 2 : end]
        mask = self._alphabet.posix.get(name.removeprefix("^"))
        if mask is None:
            raise RegexError(f"invalid character class range: `[:{name}:]`")
        self._at = end + 2
        return self._alphabet.every & ~mask if name.startswith("^") else mask

    def _class_character(self) -> str:
        character = self._next()
        if character != "\\":
            return character
        if self.at_end:
            raise RegexError("trailing \\ at end of expression: ``")
        return self._escaped_character()

    # --- Input

    def _peek(self) -> str:
        return self._text[self._at]

    def _next(self) -> str:
        self._at += 1
        return self._text[self._at - 1]

    def _took(self, text: str) -> bool:
        found = self._text.startswith(text, self._at)
        if found:
            self._at += len(text)
        return found

    def _while(self, characters: str, most: int) -> str:
        start = self._at
        while not self.at_end and self._at - start < most and self._peek() in characters:
            self._at += 1
        return self._text[start : self._at]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()

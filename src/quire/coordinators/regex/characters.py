"""Sets of characters, as the bits of an integer.

Names have few different characters (topic names have 65), so classes have only these. Other characters of a class never
occur in a name.
"""

from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits, punctuation
from unicodedata import category

_SPACES = "\t\n\f\r "
_ASCII = "".join(map(chr, range(128)))
_GRAPH = ascii_letters + digits + punctuation

_PERL = {"d": digits, "w": ascii_letters + digits + "_", "s": _SPACES}
_POSIX = {
    "alnum": ascii_letters + digits,
    "alpha": ascii_letters,
    "ascii": _ASCII,
    "blank": "\t ",
    "cntrl": "".join(map(chr, (*range(32), 127))),
    "digit": digits,
    "graph": _GRAPH,
    "lower": ascii_lowercase,
    "print": _GRAPH + " ",
    "punct": punctuation,
    "space": _SPACES + "\v",
    "upper": ascii_uppercase,
    "word": ascii_letters + digits + "_",
    "xdigit": digits + "abcdefABCDEF",
}
_CATEGORIES = {"C": "cfos", "L": "lmotu", "M": "cen", "N": "dlo", "P": "cdefios", "S": "ckmo", "Z": "lps"}
"""General categories of Unicode: `L` is all letters, `Lu` the upper case ones."""


class Alphabet:
    """The characters of names. A set is an integer; `every` has all characters, `dot` those that a dot matches."""

    __slots__ = ("_same_letters", "bits", "dot", "every", "perl", "posix", "word")

    def __init__(self, characters: str) -> None:
        self.bits = {character: 1 << bit for bit, character in enumerate(dict.fromkeys(characters))}
        self.every = (1 << len(self.bits)) - 1
        self.dot = self.every & ~self.mask_of("\n")
        self.perl: dict[str, int] = {}
        for name, members in _PERL.items():
            self.perl[name] = self.mask_of(members)
            self.perl[name.upper()] = self.every & ~self.perl[name]
        self.posix = {name: self.mask_of(members) for name, members in _POSIX.items()}
        self.word = self.perl["w"]
        letters: dict[str, int] = {}
        for character, bit in self.bits.items():
            letter = character.casefold()
            letters[letter] = letters.get(letter, 0) | bit
        self._same_letters = list(letters.values())

    def mask_of(self, characters: str) -> int:
        mask = 0
        for character in characters:
            mask |= self.bits.get(character, 0)
        return mask

    def mask_of_range(self, first: str, last: str) -> int:
        return self.mask_of("".join(character for character in self.bits if first <= character <= last))

    def unicode_class(self, name: str) -> int | None:
        """A general category or a supported script; None if it is unknown."""
        if name == "Any":
            return self.every
        if name in ("Latin", "Common"):
            # Latin has only ASCII letters here. ASCII characters that are not letters belong to Common.
            letters = self.mask_of(ascii_letters)
            return letters if name == "Latin" else self.mask_of(_ASCII) & ~letters
        if name[:1] not in _CATEGORIES or (name[1:] and name[1:] not in tuple(_CATEGORIES[name[0]])):
            return None
        return self.mask_of("".join(character for character in self.bits if category(character).startswith(name)))

    def either_case(self, mask: int) -> int:
        for letter in self._same_letters:
            if mask & letter:
                mask |= letter
        return mask


TOPIC_NAMES = Alphabet(ascii_letters + digits + "._-")

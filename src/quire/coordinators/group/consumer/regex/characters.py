"""Sets of the characters that a topic's name can have, as bits of a number.

Classes are built over these 65 characters alone: what else a class may hold never meets a name.
"""

from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from unicodedata import category

ALPHABET = ascii_letters + digits + "._-"
BITS = {character: 1 << position for position, character in enumerate(ALPHABET)}


def mask_of(characters: str) -> int:
    mask = 0
    for character in characters:
        mask |= BITS.get(character, 0)
    return mask


EVERY = mask_of(ALPHABET)
WORD = mask_of(ascii_letters + digits + "_")

PERL = {
    "d": mask_of(digits),
    "D": EVERY & ~mask_of(digits),
    "w": WORD,
    "W": EVERY & ~WORD,
    "s": 0,
    "S": EVERY,
}

POSIX = {
    "alnum": mask_of(ascii_letters + digits),
    "alpha": mask_of(ascii_letters),
    "ascii": EVERY,
    "blank": 0,
    "cntrl": 0,
    "digit": mask_of(digits),
    "graph": EVERY,
    "lower": mask_of(ascii_lowercase),
    "print": EVERY,
    "punct": mask_of("._-"),
    "space": 0,
    "upper": mask_of(ascii_uppercase),
    "word": WORD,
    "xdigit": mask_of(digits + "abcdefABCDEF"),
}

_SCRIPTS = {"Any": EVERY, "Latin": mask_of(ascii_letters), "Common": mask_of(digits + "._-")}
_CATEGORIES = ("C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl")
_MORE_CATEGORIES = (
    "No",
    "P",
    "Pc",
    "Pd",
    "Pe",
    "Pf",
    "Pi",
    "Po",
    "Ps",
    "S",
    "Sc",
    "Sk",
    "Sm",
    "So",
    "Z",
    "Zl",
    "Zp",
    "Zs",
)


def unicode_class(name: str) -> int | None:
    """A general category, or one of the scripts that topic names are written in; None for what is not known here."""
    if name in _SCRIPTS:
        return _SCRIPTS[name]
    if name not in _CATEGORIES + _MORE_CATEGORIES:
        return None
    return mask_of("".join(character for character in ALPHABET if category(character).startswith(name)))


def mask_of_range(first: str, last: str) -> int:
    return mask_of("".join(character for character in ALPHABET if first <= character <= last))


def either_case(mask: int) -> int:
    lower, upper = mask_of(ascii_lowercase), mask_of(ascii_uppercase)
    # In the alphabet the upper-case letters come 26 places after the lower-case ones.
    return mask | (mask & lower) << 26 | (mask & upper) >> 26

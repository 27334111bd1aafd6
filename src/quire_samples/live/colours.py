"""Colours of the live view: headings bold, bars green, dead letters yellow.

A line is coloured after it was escaped and cut, so colours never count as width and no text from clients is executed.
"""

import re

BOLD, CYAN, GREEN, YELLOW, DIM, PLAIN = "\x1b[1m", "\x1b[36m", "\x1b[32m", "\x1b[33m", "\x1b[2m", "\x1b[0m"
_HEADING = re.compile(r"\b(?:BROKER|SALES PER MINUTE|TOP PRODUCTS|RESULTS|[A-Z]+ QUERIES)\b")
_BAR = re.compile(r"#+")
_TITLES = re.compile(r"QUERY +ROWS/S\b.*")


def paint(line: str) -> str:
    if _TITLES.match(line):
        return f"{DIM}{line}{PLAIN}"
    if line.startswith("dead letters") and "none" not in line:
        return f"{YELLOW}{line}{PLAIN}"
    if line.startswith("Quire at "):
        return f"{BOLD}{line}{PLAIN}"
    line = _HEADING.sub(lambda found: f"{BOLD}{CYAN}{found[0]}{PLAIN}", line)
    return _BAR.sub(lambda found: f"{GREEN}{found[0]}{PLAIN}", line)

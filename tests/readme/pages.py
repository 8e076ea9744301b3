"""A Markdown page taken apart: what the tests of the READMEs look at, and what two languages of a page must have in common."""

import re
from collections import Counter
from typing import NamedTuple

_FENCED = re.compile(r"^```([a-z]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"<!-- picture -->\n.*?<!-- end of picture -->\n", re.DOTALL)
_HEADING = re.compile(r"^(#+) (.*)$", re.MULTILINE)
_SPAN = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[[^][]*\]\(([^()\s]+)\)")
_FIGURE = re.compile(r"\d+(?:[.,:]\d+)*(?: ?(?:[KMG]i?B|[mµ]?s|%)(?![A-Za-z]))?")
UNITS = {"微秒": "µs", "毫秒": "ms", "秒": "s"}  # as Chinese prose spells them


class Block(NamedTuple):
    """A fenced block."""

    language: str
    text: str


def blocks(page: str, language: str | None = None) -> list[Block]:
    """The fenced blocks outside of pictures, of one language or of all."""
    found = [Block(*match) for match in _FENCED.findall(_PICTURE.sub("", page))]
    return [block for block in found if language in (None, block.language)]


def pictures(page: str) -> list[str]:
    """What is drawn by characters: its words may be translated."""
    return [_FENCED.search(picture)[2] for picture in _PICTURE.findall(page)]


def prose(page: str) -> str:
    """The page without what is fenced, and without pictures."""
    return _FENCED.sub("", _PICTURE.sub("", page))


def headings(page: str) -> list[tuple[int, str]]:
    """Level and words of every heading, in order."""
    return [(len(level), words) for level, words in _HEADING.findall(prose(page))]


def slug(words: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")


def tables(page: str) -> list[list[list[str]]]:
    """The tables: rows of cells, the head first, without the rule below it."""
    runs = re.findall(r"(?:^\|.*\|\n)+", prose(page), re.MULTILINE)
    rows = [[_cells(line) for line in run.splitlines()] for run in runs]
    return [[table[0], *table[2:]] for table in rows]


def _cells(line: str) -> list[str]:
    """Bars that are escaped end no cell."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def spans(text: str) -> Counter[str]:
    """The code spans of prose."""
    return Counter(_SPAN.findall(" ".join(text.split())))


def targets(text: str) -> list[str]:
    """Where the links of prose lead."""
    return _LINK.findall(_SPAN.sub("", text))


def figures(text: str) -> Counter[str]:
    """The numbers of prose, with their units, outside of code spans and links; `5,000` and `1.13` are one each."""
    plain = _LINK.sub("", _SPAN.sub("", text))
    for word, unit in UNITS.items():
        plain = plain.replace(word, unit)
    return Counter(found.replace(" ", "") for found in _FIGURE.findall(plain))


def sections(page: str) -> list[str]:
    """The prose between headings, in order; before the first one is what comes first."""
    return re.split(r"^#+ .*\n", prose(page), flags=re.MULTILINE)


def statements(section: str) -> list[str]:
    """The paragraphs and the entries of lists of a section; tables are left out."""
    lines = "\n".join("" if line.startswith("|") else line for line in section.splitlines())
    return [text for text in re.split(r"\n\s*\n|\n(?=- )", lines) if text.strip()]

"""Parts of a Markdown page, for the tests of the documentation."""

import re
from collections import Counter
from typing import NamedTuple

_FENCED = re.compile(
    r"^(?:<!-- (?P<comment>[^\n]*) -->\n)?(?P<indent> *)```(?P<language>[a-z]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_MARKED = re.compile(r"(<!-- (?P<name>[a-z-]+): [^>]* -->\n)(?P<text>.*?)(<!-- end of (?P=name) -->\n)", re.DOTALL)
_SPAN = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[[^][]*\]\(([^()\s]+)\)")
_FIGURE = re.compile(r"\d+(?:[.,:]\d+)*(?: ?(?:[KMG]i?B|[mµ]?s|%)(?![A-Za-z]))?")
UNITS = {"微秒": "µs", "毫秒": "ms", "秒": "s"}  # in Chinese prose


class Block(NamedTuple):
    """A fenced block, with the comment in the line before it."""

    comment: str
    language: str
    text: str


def blocks(page: str, language: str | None = None) -> list[Block]:
    """The fenced blocks, of one language or of all; the indentation of a block in a list is removed."""
    found = []
    for match in _FENCED.finditer(page):
        text = re.sub(f"^{match['indent']}", "", match["text"], flags=re.MULTILINE)
        found.append(Block(match["comment"] or "", match["language"], text))
    return [block for block in found if language in (None, block.language)]


def prose(page: str) -> str:
    """The page without its fenced blocks."""
    return _FENCED.sub("", page)


def headings(page: str) -> list[tuple[int, str]]:
    """Level and words of every heading, in order."""
    return [(len(level), words) for level, words in re.findall(r"^(#+) (.*)$", prose(page), re.MULTILINE)]


def slug(words: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")


def tables(page: str) -> list[list[list[str]]]:
    """The tables: rows of cells, the head first, without the rule below it."""
    runs = re.findall(r"(?:^\|.*\|\n)+", prose(page), re.MULTILINE)
    rows = [[_cells(line) for line in run.splitlines()] for run in runs]
    return [[table[0], *table[2:]] for table in rows]


def _cells(line: str) -> list[str]:
    """Escaped bars do not end a cell."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def spans(text: str) -> Counter[str]:
    """The code spans of prose."""
    return Counter(_SPAN.findall(" ".join(text.split())))


def targets(text: str) -> list[str]:
    """The targets of the links of prose."""
    return _LINK.findall(_SPAN.sub("", text))


def figures(text: str) -> Counter[str]:
    """The numbers of prose, with their units, outside of code spans and links; `5,000` and `1.13` are one number each."""
    plain = _LINK.sub("", _SPAN.sub("", text))
    for word, unit in UNITS.items():
        plain = plain.replace(word, unit)
    return Counter(found.replace(" ", "") for found in _FIGURE.findall(plain))


def sections(page: str) -> list[str]:
    """The prose between headings, in order, beginning with the text before the first one."""
    return re.split(r"^#+ .*\n", prose(page), flags=re.MULTILINE)


def paragraphs(section: str) -> list[str]:
    """The paragraphs and list entries of a section; tables are left out."""
    lines = "\n".join("" if line.startswith("|") else line for line in section.splitlines())
    return [text for text in re.split(r"\n\s*\n|\n(?=- )", lines) if text.strip()]


def shown(page: str) -> dict[str, str]:
    """The parts between the markers of a page, by name."""
    return {match["name"]: match["text"] for match in _MARKED.finditer(page)}


def set_part(page: str, name: str, text: str) -> str:
    """The page with another text between the markers of one part."""
    return _MARKED.sub(lambda match: match[1] + text + match[4] if match["name"] == name else match[0], page)

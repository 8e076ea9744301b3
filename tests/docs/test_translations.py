"""A page `NAME.zh-CN.md` has the content of the English page `NAME.md`: headings, commands, tables, links and numbers."""

import re
from collections import Counter
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.docs.commands import TRANSLATIONS
from tests.docs.markdown import blocks, figures, headings, paragraphs, sections, spans, tables, targets

HAN = re.compile(r"[\u4e00-\u9fff]")
COMMENT = re.compile(r"^<!-- .* -->\n", re.MULTILINE)
ONLY_CHINESE = "其余文档为英文。"  # that most of the documentation is in English

pytestmark = pytest.mark.parametrize("chinese", TRANSLATIONS, ids=lambda file: file.name)


def english(chinese: Path) -> Path:
    return chinese.with_name(chinese.name.replace(".zh-CN", ""))


def texts(file: Path) -> list[list[str]]:
    """The paragraphs of each section, without the line of languages and the comments before blocks."""
    found = [paragraphs(COMMENT.sub("", section)) for section in sections(file.read_text())]
    return [[text for text in section if text.strip() != ONLY_CHINESE and "简体中文" not in text] for section in found]


def in_common(text: str) -> dict[str, object]:
    """The parts of a text that its translation has too: code, numbers with units, and links."""
    links = Counter(target.replace(".zh-CN", "") for target in targets(text))
    return {"code": spans(text), "numbers": figures(text), "links": links, "bold": text.count("**")}


def test_each_page_links_the_other(chinese: Path):
    page = english(chinese)
    assert page.read_text().splitlines()[2] == f"English | [简体中文]({chinese.name})"
    assert chinese.read_text().splitlines()[2] == f"[English]({page.name}) | 简体中文"


def test_the_headings_have_the_same_levels(chinese: Path):
    levels = [[level for level, _ in headings(file.read_text())] for file in (chinese, english(chinese))]
    assert levels[0] == levels[1]


def test_commands_and_their_outputs_are_equal(chinese: Path):
    assert blocks(chinese.read_text()) == blocks(english(chinese).read_text())


def test_tables_have_the_same_cells(chinese: Path):
    pairs = zip_longest(tables(english(chinese).read_text()), tables(chinese.read_text()), fillvalue=[])
    for original, translated in pairs:
        cells = [[in_common(cell) for cell in row] for row in original]
        assert [[in_common(cell) for cell in row] for row in translated] == cells


def test_paragraphs_have_the_same_content(chinese: Path):
    for section, translated in zip_longest(texts(english(chinese)), texts(chinese), fillvalue=[]):
        for text, translation in zip_longest(section, translated, fillvalue=""):
            assert in_common(translation) == in_common(text), f"{translation}\ndiffers from\n{text}"


def test_the_chinese_page_is_in_chinese(chinese: Path):
    """English text copied into the Chinese page would pass the other tests."""
    for text in (text for section in texts(chinese) for text in section):
        plain = re.sub(r"`[^`]+`|\[[^\]]*\]\([^)]*\)|<[^>]*>", "", " ".join(text.split()))
        assert HAN.search(plain) or len(re.findall(r"[A-Za-z]+", plain)) < 3, text

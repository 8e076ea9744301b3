"""README.zh-CN.md says what README.md says: whatever needs no translation is equal, in the same place."""

import re
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.readme.pages import blocks, figures, headings, pictures, sections, slug, spans, statements, tables, targets
from tests.test_readme import JOINS, loose_ends, starts_below_words

ROOT = Path(__file__).parents[1]
ENGLISH = (ROOT / "README.md").read_text()
CHINESE = (ROOT / "README.zh-CN.md").read_text()

PLACES = [words for _, words in headings(ENGLISH)]
LANGUAGES = {"README.md", "README.zh-CN.md"}  # each leads to the other
FULL_WIDTH_COMMA = "、"
CODE = re.compile(rf"(?:`[^`]+`(?:, |{FULL_WIDTH_COMMA})?)+")


def in_common(text: str, page: str) -> dict[str, object]:
    """What a text and its translation have in common: code, numbers with units, and where links lead."""
    anchors = {f"#{slug(words)}": place for place, (_, words) in enumerate(headings(page))}
    linked = [anchors.get(target, target) for target in targets(text) if target not in LANGUAGES]
    return {"code": spans(text), "numbers": figures(text), "links": sorted(map(str, linked))}


def test_the_headings_are_of_the_same_levels():
    assert [level for level, _ in headings(CHINESE)] == [level for level, _ in headings(ENGLISH)]


def test_each_leads_to_the_other():
    assert ENGLISH.splitlines()[2] == "English | [简体中文](README.zh-CN.md)"
    assert CHINESE.splitlines()[2] == "[English](README.md) | 简体中文"


def test_the_commands_and_what_they_print_are_equal():
    for english, chinese in zip_longest(blocks(ENGLISH), blocks(CHINESE)):
        assert chinese == english
    assert len(blocks(ENGLISH)) > 20


def test_comments_and_folds_are_equal():
    marks = r"<!-- .* -->|</?(?:details|summary)>"
    assert re.findall(marks, CHINESE) == re.findall(marks, ENGLISH)


@pytest.mark.parametrize("number", range(len(tables(ENGLISH))))
def test_the_rows_of_a_table_say_the_same(number):
    english, chinese = tables(ENGLISH)[number], (tables(CHINESE) + [[[]]] * len(tables(ENGLISH)))[number]
    shape = [len(row) for row in english]
    for row, translated in zip_longest(english, chinese, fillvalue=[]):
        assert len(translated) == len(row), f"this row, or its translation, is missing: {row or translated}"
        for cell, other in zip(row, translated, strict=True):
            if CODE.fullmatch(cell) or cell in ("repair", "deny", "warn", "counter", "gauge", "histogram", ""):
                assert other.replace(FULL_WIDTH_COMMA, ", ") == cell
            assert in_common(other, CHINESE) == in_common(cell, ENGLISH), f"{other}\ndiffers from\n{cell}"
            assert bool(other) == bool(cell)
    assert len(tables(CHINESE)) == len(tables(ENGLISH))
    assert len(set(shape)) == 1


@pytest.mark.parametrize("place", range(len(PLACES) + 1), ids=["top", *PLACES])
def test_the_paragraphs_say_the_same(place):
    english, chinese = (statements(sections(page)[place]) for page in (ENGLISH, CHINESE))
    for said, translated in zip_longest(english, chinese, fillvalue=""):
        assert in_common(translated, CHINESE) == in_common(said, ENGLISH), f"{translated}\ndiffers from\n{said}"
        assert translated.count("**") == said.count("**")
        assert bool(translated) == bool(said)
    assert len(sections(CHINESE)) == len(sections(ENGLISH))


def test_pictures_are_drawn_alike():
    drawn = [
        [re.sub(rf"[^{''.join(JOINS)}]", "", picture) for picture in pictures(page)] for page in (ENGLISH, CHINESE)
    ]
    assert drawn[0] == drawn[1]
    words = [
        [re.findall(r"/\w+|etcd|Pending|\w+Error", picture) for picture in pictures(page)]
        for page in (ENGLISH, CHINESE)
    ]
    assert words[0] == words[1]
    for picture in pictures(CHINESE):
        assert [end for end in loose_ends(picture) if not starts_below_words(picture, end)] == []


def test_what_can_be_translated_is():
    """Prose that was copied would pass every comparison."""
    for text in (text for section in sections(CHINESE) for text in statements(section)):
        plain = re.sub(r"`[^`]+`|\[[^\]]*\]\([^)]*\)|<[^>]*>", "", " ".join(text.split()))
        assert re.search(r"[\u4e00-\u9fff]", plain) or len(re.findall(r"[A-Za-z]+", plain)) < 3, text
    for table in tables(CHINESE):
        assert all(re.search(r"[\u4e00-\u9fff]", " ".join(row)) for row in table if "Prometheus" not in row)


def test_what_a_screenshot_shows_is_told_in_chinese():
    told = [re.findall(r"!\[([^]]*)\]\((.*?)\)", page) for page in (ENGLISH, CHINESE)]
    assert [path for _, path in told[0]] == [path for _, path in told[1]] != []
    assert all(re.search(r"[\u4e00-\u9fff]", words) for words, _ in told[1])
    assert all(words for words, _ in told[0])


def test_lines_are_not_broken_within_a_sentence():
    """A browser shows a broken line as a space, which Chinese has none of."""
    for section in sections(CHINESE):
        for text in statements(section):
            lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("<", "- "))]
            assert len(lines) <= 1, text

"""README.md is short, and README.zh-CN.md has the same content."""

import re
from itertools import zip_longest

import pytest

from tests.docs.commands import CHINESE, README
from tests.docs.generated import DOCS
from tests.docs.markdown import blocks, figures, headings, paragraphs, sections, spans, tables, targets

ENGLISH_PAGE, CHINESE_PAGE = README.read_text(), CHINESE.read_text()
MAX_LINES = 150
LANGUAGES = {README.name, CHINESE.name}  # each links the other
HAN = re.compile(r"[\u4e00-\u9fff]")


def in_common(text: str) -> dict[str, object]:
    """The parts of a text that its translation has too: code, numbers with units, and links."""
    links = sorted(target for target in targets(text) if target not in LANGUAGES)
    return {"code": spans(text), "numbers": figures(text), "links": links, "bold": text.count("**")}


@pytest.mark.parametrize("page", [ENGLISH_PAGE, CHINESE_PAGE], ids=["English", "Chinese"])
def test_a_readme_is_short(page: str):
    assert len(page.splitlines()) <= MAX_LINES


def test_each_readme_links_the_other():
    assert ENGLISH_PAGE.splitlines()[2] == f"English | [简体中文]({CHINESE.name})"
    assert CHINESE_PAGE.splitlines()[2] == f"[English]({README.name}) | 简体中文"


def test_the_headings_have_the_same_levels():
    assert [level for level, _ in headings(CHINESE_PAGE)] == [level for level, _ in headings(ENGLISH_PAGE)]


def test_the_first_link_leads_to_manifests_to_copy():
    assert targets(ENGLISH_PAGE)[1] == "docs/request.md"  # after that of the other language


def test_the_proof_in_one_number_is_that_of_the_table():
    (table,) = [rows for rows in tables((DOCS / "proof.md").read_text()) if "differences" in rows[0]]
    pods = sum(int(row[3].replace(",", "")) for row in table[1:])
    assert f"**{sum(int(row[-1]) for row in table[1:])} of {pods:,} random pods**" in ENGLISH_PAGE
    assert f"code of {len({row[0] for row in table[1:]})} releases" in ENGLISH_PAGE


def test_commands_and_their_outputs_are_equal():
    assert blocks(CHINESE_PAGE) == blocks(ENGLISH_PAGE)


def test_tables_have_the_same_cells():
    for english, chinese in zip_longest(tables(ENGLISH_PAGE), tables(CHINESE_PAGE), fillvalue=[]):
        cells = [[in_common(cell) for cell in row] for row in english]
        assert [[in_common(cell) for cell in row] for row in chinese] == cells


def test_paragraphs_have_the_same_content():
    for english, chinese in zip_longest(sections(ENGLISH_PAGE), sections(CHINESE_PAGE), fillvalue=""):
        # Only the Chinese page states that the documentation is in English.
        translated = [text for text in paragraphs(chinese) if text.strip() != "文档为英文。"]
        for text, translation in zip_longest(paragraphs(english), translated, fillvalue=""):
            assert in_common(translation) == in_common(text), f"{translation}\ndiffers from\n{text}"


def test_the_chinese_page_is_in_chinese():
    """English text copied into the Chinese page would pass the other tests."""
    for text in (text for section in sections(CHINESE_PAGE) for text in paragraphs(section)):
        plain = re.sub(r"`[^`]+`|\[[^\]]*\]\([^)]*\)|<[^>]*>", "", " ".join(text.split()))
        assert HAN.search(plain) or len(re.findall(r"[A-Za-z]+", plain)) < 3, text

"""README.md is short, and so is README.zh-CN.md; test_translations.py compares them."""

import pytest

from tests.docs.commands import CHINESE, README
from tests.docs.generated import DOCS
from tests.docs.markdown import tables, targets

ENGLISH_PAGE, CHINESE_PAGE = README.read_text(), CHINESE.read_text()
MAX_LINES = 150


@pytest.mark.parametrize("page", [ENGLISH_PAGE, CHINESE_PAGE], ids=["English", "Chinese"])
def test_a_readme_is_short(page: str):
    assert len(page.splitlines()) <= MAX_LINES


def test_the_first_link_leads_to_manifests_to_copy():
    assert targets(ENGLISH_PAGE)[1] == "docs/request.md"  # after that of the other language


def test_the_proof_in_one_number_is_that_of_the_table():
    (table,) = [rows for rows in tables((DOCS / "proof.md").read_text()) if "differences" in rows[0]]
    pods = sum(int(row[3].replace(",", "")) for row in table[1:])
    assert f"**{sum(int(row[-1]) for row in table[1:])} of {pods:,} random pods**" in ENGLISH_PAGE
    assert f"code of {len({row[0] for row in table[1:]})} releases" in ENGLISH_PAGE

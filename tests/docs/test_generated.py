"""The generated parts of the documentation are up to date."""

from collections import Counter

import pytest

from tests.docs.commands import PAGES
from tests.docs.generated import parts
from tests.docs.markdown import shown

RENEW = "renew it with `python -m tests.docs`"
# Not here: these take long, or other programs.
MEASURED = {"bench", "releases", "pods", "gangs", "tight", "queues", "quotas", "exclusive", "life", "storm"}
SHOWN = [
    (file.name, name, text) for file in PAGES for name, text in shown(file.read_text()).items() if name not in MEASURED
]


@pytest.mark.parametrize("page,name,text", SHOWN, ids=[f"{page}:{name}" for page, name, _ in SHOWN])
def test_a_generated_part_is_up_to_date(page: str, name: str, text: str):
    assert text == parts()[name], RENEW


def test_every_generated_part_is_shown_once():
    assert Counter(name for _, name, _ in SHOWN) == Counter(parts().keys())

"""The checks that the documentation names exist."""

import re

from tests.cases import each_case
from tests.docs.generated import DOCS
from tests.docs.markdown import spans
from webhook.questions.doctor.registry import CHECKS


@each_case("page", ["troubleshooting.md", "upstream.md"])
def test_named_checks_exist(page: str):
    found = re.findall(r"`?doctor`?: ((?:`[a-z-]+`(?:, | and )?)+)", (DOCS / page).read_text())
    named = {check for cell in found for check in spans(cell)}
    assert len(named) > 10
    assert named <= CHECKS.keys()

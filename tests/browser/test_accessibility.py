"""axe-core finds no serious fault on any page: wide and narrow, light and dark, everything unfolded."""

from pathlib import Path

import axe_core_python
import pytest

from tests.browser.test_pages import MORE, PAGES
from tests.browser.user import User

AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text()
RUN = """
const done = arguments[arguments.length - 1];
for (const each of document.querySelectorAll("details")) each.open = true;
axe.run(document, { resultTypes: ["violations"] }).then((found) => done(
  found.violations
    .filter((each) => ["serious", "critical"].includes(each.impact))
    .map((each) => `${each.id}: ${each.help}: ${each.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`)
), (error) => done([String(error)]));
"""


@pytest.mark.parametrize("path", [*PAGES.values(), *MORE, "/nowhere"])
def test_axe_finds_nothing_serious(user: User, path: str):
    user.open(path)
    user.js(AXE)
    for width in (1440, 390):
        user.size(width, 900)
        for scheme in ("light", "dark"):
            user.prefers(scheme)
            assert user.driver.execute_async_script(RUN) == [], f"{width} pixels, {scheme}"
    user.forgive(404)

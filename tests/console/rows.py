"""Rows of pages, in pages.yaml beside a test: what the console shows, what it is asked, and what it answers.

console   its `policy`; `only` these rules; `nodes` of a fleet, each a name and cards (split, memory, type), null if it is
          unknown; `log: sample`; `pods: sample`; at the top for all rows
case      a name; `needs`: a question, without which the row is left out
get       a path; or `post`, with the fields of a `form` or with `json`; or `head`, `options`, `delete`
headers   of the request; `answered`: of the response
status    200 unless it is there
shows     texts on the page, whatever the markup and the white space
html      texts in the response as it is
lacks     texts in neither
links     what the page links
answers   of the JSON: see `has` of tests/cli/rows.py
then      more requests
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from html import unescape
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml

from tests.audit import sample
from tests.cli.conftest import only_rules
from tests.cli.rows import Loader, flat, has, texts_of
from tests.console.audit_lines import LINES, write
from tests.console.conftest import FORM, PAGE, Fixed, client_of, followed, sample_parts, sample_sources
from tests.console.nodes import vgpu_node
from tests.console.pages import Page
from tests.questions import is_removed
from webhook.policy.policy import parse_policy

KEYS = {*re.findall(r"(?m)^\w+|(?<=`)(?:needs|answered|post|form|json|head|options|delete)", __doc__ or "")}  # of a row


def page_rows(module: str) -> Any:
    table = yaml.load(Path(module).with_name("pages.yaml").read_text(), Loader)

    cases = [each for each in table["cases"] if not is_removed(each.get("needs", ""))]

    @pytest.mark.parametrize("case", cases, ids=lambda case: case.get("case") or str(case)[:80])
    def test_page(case: dict[str, Any], tmp_path: Path) -> None:
        asked = console(tmp_path, **case.get("console", table.get("console", {})))
        for step in (case, *case.get("then", [])):
            assert step.keys() <= KEYS, step.keys() - KEYS
            check(asked, step)

    return test_page


def console(home: Path, policy: Any = None, only: str = "", log: str = "", pods: str = "", **fleet: Any) -> Any:
    document = {**(only_rules(*only.split()) if only else {}), **(policy or {})}
    usual = sample.POLICY if log else None
    parts = sample_parts(parse_policy(document, "the test's policy") if document else usual)
    if "nodes" in fleet:
        nodes = fleet["nodes"]
        parts = replace(parts, nodes=nodes and [vgpu_node(name, *map(tuple, cards)) for name, *cards in nodes])
    settings = Fixed(parts)
    follower = write(home / "audit.jsonl", LINES) if log else None
    return client_of(settings, follower, **(followed(sample_sources(settings)) if pods else {}))


def check(client: Any, step: dict[str, Any]) -> None:
    method = next(each for each in ("get", "post", "head", "options", "delete") if each in step)
    sent = {"data": step.get("form")} if method == "post" and "json" not in step else {"json": step.get("json")}
    path, *values = [
        Template(text).safe_substitute(PAGE=PAGE, FORM=FORM)
        for text in (step[method], *step.get("headers", {}).values())
    ]
    headers = dict(zip(step.get("headers", {}), values, strict=True))
    form = sent if method == "post" else {}
    response = client.open(path, method=method.upper(), headers=headers, buffered=True, **form)
    text = response.text
    status = step.get("status", 200)
    assert response.status_code in (status if isinstance(status, list) else [status]), text[:2000]
    shown = flat(Page(text).text) if response.mimetype == "text/html" else text
    assert [each for each in texts_of(step.get("shows")) if flat(each) not in shown] == [], shown[:3000]
    assert [each for each in texts_of(step.get("html")) if each not in unescape(text)] == []
    assert [each for each in texts_of(step.get("lacks")) if each in shown or each in text] == []
    assert step.get("answered", {}).items() <= dict(response.headers).items()
    if "links" in step:
        assert set(step["links"]) <= set(hrefs(text)), sorted(set(hrefs(text)))
    if "answers" in step:
        assert has(response.json, step["answers"]), response.json


def hrefs(text: str) -> Iterable[str]:
    return [each["href"] for each in Page(text).all("a") if "href" in each]

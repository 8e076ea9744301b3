"""The rules page: all rules, and their levels in a namespace."""

import re
from html import unescape

from tests.cases import each_case
from tests.console.rows import page_rows
from webhook.console.texts import prose
from webhook.suites.rulebook import rows

test_page = page_rows(__file__)

ROWS = rows()


def test_the_operation_lists_the_rules_in_order(client):
    rules = client.get("/api/v1/rules").json["rules"]
    found = [(rule["id"], rule["kind"], rule["default"], rule["what"], rule["why"]) for rule in rules]
    assert found == [(row.id, row.kind, row.level, row.what, row.why) for row in ROWS]
    repairs = [row for row in ROWS if row.level == "repair"]
    assert 3 < len(repairs) < len(ROWS) - 10


def test_the_page_lists_each_rule_with_its_level(client):
    page = client.get("/rules").text
    listed = re.findall(
        r'<span class="level (\w+)">.*?<a href="/rules/([\w-]+)"><code>([\w-]+)</code>', page, re.DOTALL
    )
    assert [(name, level) for level, _, name in listed] == [(row.id, row.level) for row in ROWS]
    for row in ROWS:
        assert str(prose(row.what)) in page


@each_case("row", ROWS, ids=lambda row: f"{row.kind}-{row.id}")
def test_each_rule_has_a_page_with_an_example_that_it_applies_to(client, row):
    page = client.get(f"/rules/{row.id}")
    assert page.status_code == 200
    found = client.get(f"/api/v1/rules/{row.id}").json
    assert (found["kind"], found["what"]) == (row.kind, row.what)
    assert found["text"] in unescape(page.text)
    assert found["example"]["manifest"] in unescape(page.text).replace("\r", "")
    if row.level == "repair":
        assert {line["mark"] for line in found["example"]["diff"]} & {"+", "-"}
    elif row.level == "audit":
        assert [each for each in found["example"]["messages"] if each["text"].startswith(row.id)] == []
    else:
        assert found["example"]["messages"]
        assert all(message["text"] in unescape(page.text) for message in found["example"]["messages"])

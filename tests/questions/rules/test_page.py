"""The rules page: all rules, and their levels in a namespace."""

import re
from html import unescape

from tests.cases import each_case
from tests.console.conftest import Fixed, sample_parts
from webhook.console.app import create_app
from webhook.console.state import ConsoleState
from webhook.console.texts import prose
from webhook.policy.policy import parse_policy
from webhook.suites.rulebook import rows

ROWS = rows()
VALIDATIONS = [row for row in ROWS if row.level != "repair"]
MUTATIONS = [row for row in ROWS if row.level == "repair"]
DENIED = next(row for row in VALIDATIONS if row.level == "deny")
OTHER = next(row for row in VALIDATIONS if row.level == "deny" and row.id != DENIED.id)

POLICY = {
    "rules": {DENIED.id: "warn"},
    "namespaces": [{"match": ["team-*"], "rules": {OTHER.id: "off"}}, {"match": ["kube-*"], "exempt": True}],
}


def with_policy(raw):
    return create_app(ConsoleState(Fixed(sample_parts(parse_policy(raw, "test"))))).test_client()


def by_id(client, namespace=""):
    found = client.get("/api/v1/rules", query_string={"namespace": namespace}).json
    return found, {rule["id"]: rule for rule in found["rules"]}


def test_the_operation_lists_the_rules_in_order(client):
    found, _ = by_id(client)
    assert [(rule["id"], rule["kind"], rule["default"], rule["what"], rule["why"]) for rule in found["rules"]] == [
        (row.id, row.kind, row.level, row.what, row.why) for row in ROWS
    ]
    assert len(MUTATIONS) > 3
    assert len(VALIDATIONS) > 10


def test_a_search_finds_words_of_the_id_and_the_text(client):
    def found(search):
        return {rule["id"] for rule in client.get("/api/v1/rules", query_string={"search": search}).json["rules"]}

    assert "isolation-env" in found("CUDA_REDIRECT")
    assert found("count CARD") >= {"card-count"}
    assert found("count nothing-like-it") == set()
    assert "No rule matches" in client.get("/rules?search=nothing-like-it").text


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
        assert found["example"]["messages"] == []
    else:
        assert found["example"]["messages"]
        assert all(message["text"] in unescape(page.text) for message in found["example"]["messages"])


def test_an_entry_sets_levels_for_its_namespaces():
    client = with_policy(POLICY)
    found, rules = by_id(client, "team-a")
    assert (found["entry"], found["exempt"]) == (0, False)
    assert (rules[OTHER.id]["level"], rules[OTHER.id]["source"], rules[OTHER.id]["active"]) == (
        "off",
        "namespaces",
        False,
    )
    assert [rules[DENIED.id][key] for key in ("level", "source", "default")] == ["warn", "rules", "deny"]
    page = client.get("/rules?namespace=team-a").text
    assert "Entry 1 of the policy" in page
    assert f"/rules/{OTHER.id}?namespace=team-a" in page
    assert by_id(client, "steam-a")[0]["entry"] is None


def test_no_rule_is_active_in_an_exempt_namespace():
    client = with_policy(POLICY)
    found, rules = by_id(client, "kube-system")
    assert (found["entry"], found["exempt"]) == (1, True)
    assert not any(rule["active"] for rule in rules.values())
    assert "its pods are not reviewed" in client.get("/rules?namespace=kube-system").text


def test_a_mutation_whose_setting_is_off_is_not_in_use():
    client = with_policy({"toleration": None})
    _, rules = by_id(client)
    unused = {name for name, rule in rules.items() if rule["kind"] == "mutation" and not rule["active"]}
    _, before = by_id(with_policy({}))
    assert unused - {name for name, rule in before.items() if not rule["active"]}
    assert "not in use" in client.get("/rules").text


def test_the_rules_have_the_enforcement_and_the_repairs_of_the_namespace():
    entry = {"match": ["team-*"], "enforcement": "enforce", "repairs": {"toleration": "on", "scheduler-name": "off"}}
    client = with_policy({"enforcement": "audit", "repairs": {"toleration": "off"}, "namespaces": [entry]})
    found, rules = by_id(client)
    assert found["enforcement"] == "audit"
    assert (rules["toleration"]["active"], rules["toleration"]["source"]) == (False, "repairs")
    assert rules["scheduler-name"]["active"]
    assert "<code>enforcement: audit</code>" in client.get("/rules").text
    found, rules = by_id(client, "team-a")
    assert found["enforcement"] == "enforce"
    assert rules["toleration"]["active"]
    assert (rules["scheduler-name"]["active"], rules["scheduler-name"]["source"]) == (False, "namespaces")
    assert "<code>enforcement:" not in client.get("/rules?namespace=team-a").text


def test_an_unknown_rule_is_not_found(client):
    for path in ("/rules/no-such", "/api/v1/rules/no-such"):
        response = client.get(path)
        assert response.status_code == 404
        assert "/rules lists them" in response.text
    found = client.get("/rules/no-such", headers={"Accept": "application/json"}).json
    assert found["message"] == "no rule is called 'no-such'; /rules lists them"

"""What goes into the API server's own audit log: keys that it takes, values that stay short."""

import re
from typing import Any

from hypothesis import given

from tests.audit.test_audit_secrets import SECRET, SNAPSHOTS, pods
from tests.reviewing import request
from webhook.review import mutate, review, validate
from webhook.rules.registry import MUTATIONS, VALIDATIONS

RULES = {rule.id for rule in (*MUTATIONS, *VALIDATIONS)}
KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")  # a key with a space or ! is dropped without a word
LONGEST = 2048


@given(pods())
def test_keys_and_values(pod: dict[str, Any]):
    asked = request(pod)
    for half in (mutate, validate, review):
        found = half(asked, SNAPSHOTS[1]).answer().audit
        assert found is not None
        assert all(KEY.fullmatch(key) for key in found)
        assert found.keys() <= {"decision-id", "outcome", "rules"}
        assert re.fullmatch(r"[0-9a-f]{12}", found["decision-id"])
        assert found["outcome"] in ("denied", "mutated", "warned", "allowed")
        rules = found["rules"].split(",") if "rules" in found else []
        assert set(rules) <= RULES
        assert len(rules) == len(set(rules))
        assert SECRET not in str(found)


def test_all_rules_together_stay_short():
    assert len(",".join(sorted(RULES))) < LONGEST


def test_an_untouched_request_has_no_annotations():
    assert validate(request({"spec": {}}, operation="DELETE"), SNAPSHOTS[0]).answer().audit is None

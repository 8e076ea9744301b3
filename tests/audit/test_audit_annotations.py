"""The annotations for the API server's audit log: valid keys, short values."""

import re
from typing import Any

from hypothesis import given

from tests.audit.test_audit_secrets import SECRET, SNAPSHOTS, pods
from tests.reviewing import request
from webhook.review import mutate, review, validate
from webhook.rules.registry import MUTATIONS, VALIDATIONS

RULES = {rule.id for rule in (*MUTATIONS, *VALIDATIONS)}
KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")  # the API server silently drops a key with a space or !
LONGEST = 2048


@given(pods())
def test_audit_annotations_have_valid_keys_and_values(pod: dict[str, Any]):
    admission_request = request(pod)
    for endpoint in (mutate, validate, review):
        found = endpoint(admission_request, SNAPSHOTS[1]).answer().audit
        assert found is not None
        assert all(KEY.fullmatch(key) for key in found)
        assert found.keys() <= {"decision-id", "outcome", "rules"}
        assert re.fullmatch(r"[0-9a-f]{12}", found["decision-id"])
        assert found["outcome"] in ("denied", "mutated", "warned", "allowed")
        rules = found["rules"].split(",") if "rules" in found else []
        assert set(rules) <= RULES
        assert len(rules) == len(set(rules))
        assert SECRET not in str(found)


def test_the_ids_of_all_rules_fit_into_one_annotation():
    assert len(",".join(sorted(RULES))) < LONGEST


def test_a_request_that_is_not_reviewed_has_no_annotations():
    assert validate(request({"spec": {}}, operation="DELETE"), SNAPSHOTS[0]).answer().audit is None

"""A rule that is skipped for pods without some fields has no findings in these pods."""

from typing import Any

from tests.cases import each_case
from tests.rules.test_cases import ALL, request_of, snapshot_of
from webhook.devices.requests import DevicePod
from webhook.errors import Malformed
from webhook.pod.view import CONTAINER_FIELDS, OPTIONAL_FIELDS, SPEC_FIELDS, PodView
from webhook.policy.levels import REMEMBERED, Active
from webhook.rules.registry import VALIDATIONS
from webhook.rules.reviewed_pod import ReviewedPod

CONFIG = snapshot_of({}).config
SOME_FIELDS = [rule for rule in VALIDATIONS if rule.fields]


@each_case("case", [case for cases in ALL.values() for case in cases], ids=lambda case: case["name"])
def test_a_finding_needs_one_of_the_rules_fields(case: dict[str, Any]):
    request, snapshot = request_of(case), snapshot_of(case)
    try:
        context = snapshot.context_of(request)
        pod = ReviewedPod(PodView(request.object or {}), context)
        reporting = {rule.id for rule in SOME_FIELDS if list(rule.check(pod, context))}
    except Malformed:
        return
    assert reporting <= {rule.id for rule in SOME_FIELDS if not rule.fields.isdisjoint(pod.fields)}


def test_rules_name_optional_fields_only():
    assert {field for rule in VALIDATIONS for field in rule.fields} <= OPTIONAL_FIELDS


def test_a_pod_has_the_optional_fields_of_all_its_containers():
    containers = [{"name": field, field: []} for field in CONTAINER_FIELDS - {"securityContext"}]
    pod = {"spec": {"containers": [{"name": "main"}], "ephemeralContainers": containers, "volumes": []}}
    pod["metadata"] = {"annotations": {"a": "b"}}
    assert DevicePod(PodView(pod), CONFIG).fields == {"annotations", "volumes"} | CONTAINER_FIELDS - {"securityContext"}


def test_all_fields_count_as_present_on_update():
    view = PodView({"spec": {}})
    assert DevicePod(view, CONFIG).fields == frozenset()
    assert DevicePod(view, CONFIG, view).fields == OPTIONAL_FIELDS


def test_the_rules_for_some_kinds_of_pods_are_remembered():
    effective, optional = snapshot_of({}).policy.of("default"), sorted(SPEC_FIELDS - {"resources"} | CONTAINER_FIELDS)

    def rules_for(number: int) -> Active:
        """Of a pod whose fields are the bits of the number."""
        fields = {field: [] for bit, field in enumerate(optional) if number >> bit & 1}
        return effective.for_pod(DevicePod(PodView({"spec": {**fields, "containers": [fields]}}), CONFIG))

    first = rules_for(0)
    for number in range(REMEMBERED):
        assert rules_for(number)
        assert rules_for(0) is first
    rules_for(REMEMBERED)
    assert rules_for(0) is not first

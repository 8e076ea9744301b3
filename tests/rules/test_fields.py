"""A rule that is skipped for pods without some fields has no findings in these pods."""

from itertools import product
from typing import Any

from tests.cases import each_case
from tests.rules.test_cases import ALL, _request, _snapshot
from webhook.devices.requests import DevicePod
from webhook.errors import Malformed
from webhook.pod.view import CONTAINER_FIELDS, OPTIONAL_FIELDS, SPEC_FIELDS, PodView
from webhook.rules.registry import VALIDATIONS
from webhook.rules.reviewed_pod import ReviewedPod

CONFIG = _snapshot({}).config
SOME_FIELDS = [rule for rule in VALIDATIONS if rule.fields]


@each_case("case", [case for cases in ALL.values() for case in cases], ids=lambda case: case["name"])
def test_a_finding_needs_one_of_the_rules_fields(case: dict[str, Any]):
    request, snapshot = _request(case), _snapshot(case)
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


def test_the_cache_of_rules_for_pods_is_bounded():
    effective = _snapshot({}).policy.of("default")
    for present in product((True, False), repeat=len(SPEC_FIELDS)):
        for field in (*CONTAINER_FIELDS, *(f"{one} {two}" for one, two in product(CONTAINER_FIELDS, repeat=2))):
            spec = {name: [] for name, is_present in zip(SPEC_FIELDS, present, strict=True) if is_present}
            pod = DevicePod(PodView({"spec": {**spec, "containers": [{key: [] for key in field.split()}]}}), CONFIG)
            assert effective.for_pod(pod)
    assert len(effective._known) <= 1024

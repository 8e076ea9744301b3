"""A rule that is not run, as the pod or the cluster lacks what it needs, would find nothing."""

from typing import Any

from tests.cases import each_case
from tests.properties.laws import missed
from tests.rules.test_cases import ALL, request_of, snapshot_of
from webhook import names
from webhook.devices.families import PodFact, Role
from webhook.devices.requests import DevicePod
from webhook.errors import Malformed
from webhook.pod.view import PodView
from webhook.policy.levels import REMEMBERED, Active
from webhook.rules.context import ClusterFact
from webhook.rules.registry import OPTIONAL_FIELDS, VALIDATIONS
from webhook.rules.reviewed_pod import ReviewedPod

SNAPSHOT = snapshot_of({})
CONFIG = SNAPSHOT.config
CONTAINER_FIELDS = OPTIONAL_FIELDS.containers
EVERY_FACT = {fact for facts in (*OPTIONAL_FIELDS, Role, PodFact) for fact in facts}


@each_case("case", [case for cases in ALL.values() for case in cases], ids=lambda case: case["name"])
def test_without_a_fact_that_it_needs_a_rule_finds_nothing(case: dict[str, Any]):
    request, snapshot = request_of(case), snapshot_of(case)
    try:
        assert not missed(ReviewedPod(PodView(request.object or {}), snapshot.context_of(request)))
    except Malformed:
        return


def test_rules_need_facts_that_there_are_and_each_fact_is_needed():
    assert {*PodFact} <= {fact for rule in VALIDATIONS for fact in rule.facts} <= EVERY_FACT
    assert {fact for rule in VALIDATIONS for fact in rule.knows} == {*ClusterFact}


def test_a_pod_has_the_optional_fields_of_all_its_containers():
    containers = [{"name": field, field: []} for field in CONTAINER_FIELDS - {"securityContext"}]
    pod = {"spec": {"containers": [{"name": "main"}], "ephemeralContainers": containers, "volumes": []}}
    pod["metadata"] = {"annotations": {"a": "b"}}
    found = DevicePod(PodView(pod), CONFIG).facts(OPTIONAL_FIELDS)
    assert found == {"annotations", "volumes"} | CONTAINER_FIELDS - {"securityContext"}


def test_all_facts_count_as_present_on_update():
    view = PodView({"spec": {}})
    assert DevicePod(view, CONFIG).facts(OPTIONAL_FIELDS) == frozenset()
    assert DevicePod(view, CONFIG, view).facts(OPTIONAL_FIELDS) == EVERY_FACT


def test_the_rules_for_some_kinds_of_pods_are_remembered():
    optional = sorted(OPTIONAL_FIELDS.spec - {"resources"} | CONTAINER_FIELDS)
    effective, context = SNAPSHOT.policy.at(None), SNAPSHOT.context_of(request_of({"pod": {}}))

    def rules_for(number: int) -> Active:
        """Of a pod with a vGPU, whose other fields are the bits of the number."""
        fields = {field: [] for bit, field in enumerate(optional) if number >> bit & 1}
        container = {**fields, "resources": {"limits": {names.VGPU_NUMBER: 1}}}
        pod = ReviewedPod(PodView({"spec": {**fields, "containers": [container]}}), context)
        return effective.for_pod(pod)

    first = rules_for(0)
    for number in range(REMEMBERED):
        assert rules_for(number)
        assert rules_for(0) is first
    rules_for(REMEMBERED)
    assert rules_for(0) is not first

"""Any object gives results, never a traceback."""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.questions.doctor.cluster import facts_of, healthy
from tests.strategies import hostile, json_objects, json_values, mangled
from webhook.questions.doctor.facts import HttpResponse, ObjectKind
from webhook.questions.doctor.registry import CHECKS, examine
from webhook.results import CheckResult

TEXTS = ("device-config.yaml", "volcano-scheduler.conf", "policy.yaml")


def check_results(facts):
    results = examine(facts)
    assert {result.check for result in results} == set(CHECKS)
    assert all(isinstance(result, CheckResult) and result.message for result in results)


@examples(50)
@given(st.data())
def test_an_object_with_a_random_value_is_checked(data):
    objects = healthy()
    place = data.draw(st.sampled_from(sorted(objects)))
    objects[place] = {**data.draw(mangled(st.just(objects[place]))), "kind": objects[place]["kind"]}
    check_results(facts_of(objects))


@examples(40)
@given(st.data())
def test_a_configuration_with_a_random_value_is_checked(data):
    objects = healthy()
    texts = [(raw["data"], key) for raw in objects.values() for key in TEXTS if key in raw.get("data", {})]
    owner, key = data.draw(st.sampled_from(texts))
    owner[key] = yaml.safe_dump(data.draw(mangled(st.just(yaml.safe_load(owner[key])))))
    check_results(facts_of(objects))


@examples(25)
@given(
    st.lists(st.tuples(json_objects | hostile.filter(lambda raw: isinstance(raw, dict)), st.sampled_from(ObjectKind)))
)
def test_random_objects_are_checked(listed):
    check_results(facts_of({at: {**raw, "kind": kind} for at, (raw, kind) in enumerate(listed)}))


@examples(25)
@given(
    st.text(max_size=200),
    st.integers(0, 999),
    st.dictionaries(st.sampled_from(TEXTS), st.text(max_size=60)),
    json_values,
)
def test_random_texts_are_checked(body, status, texts, annotations):
    objects = healthy()
    for raw in objects.values():
        raw.get("data", {}).update(texts)
    objects["Node/gpu-a"]["metadata"]["annotations"] = annotations
    check_results(facts_of(objects, readiness=HttpResponse(status, body), metrics=HttpResponse(status, body)))


def test_invalid_counters_are_checked():
    for count in ("1e999", "NaN", "-1", "1e", "+Inf", "0x1"):
        body = f'apiserver_admission_webhook_fail_open_count{{name="pods.vgpu-webhook.svc"}} {count}\n'
        check_results(facts_of(healthy(), metrics=HttpResponse(200, body)))

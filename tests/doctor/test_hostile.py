"""Objects that lie, or are anything at all: lines, never a traceback."""

import copy

import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.doctor.cluster import RENDER, facts_of, healthy
from tests.examples import examples
from tests.strategies import hostile, json_objects, json_values, mangled
from webhook.doctor.check import CheckResult
from webhook.doctor.facts import HttpResponse, ObjectKind
from webhook.doctor.registry import CHECKS, examine

HEALTHY = healthy()
TEXTS = ("device-config.yaml", "volcano-scheduler.conf", "policy.yaml")


def sound(facts):
    found = examine(facts, RENDER)
    assert {told.check for told in found} == set(CHECKS)
    assert all(isinstance(told, CheckResult) and told.message for told in found)


@examples(50)
@given(st.data())
def test_one_place_holds_something_else(data):
    objects = copy.deepcopy(HEALTHY)
    place = data.draw(st.sampled_from(sorted(objects)))
    kind = objects[place]["kind"]
    objects[place] = {**data.draw(mangled(st.just(objects[place]))), "kind": kind}
    sound(facts_of(objects))


@examples(40)
@given(st.data())
def test_one_place_of_a_configuration_holds_something_else(data):
    objects = copy.deepcopy(HEALTHY)
    texts = [(raw["data"], key) for raw in objects.values() for key in TEXTS if key in raw.get("data", {})]
    owner, key = data.draw(st.sampled_from(texts))
    owner[key] = yaml.safe_dump(data.draw(mangled(st.just(yaml.safe_load(owner[key])))))
    sound(facts_of(objects))


@examples(25)
@given(
    st.dictionaries(st.integers(0, 9), json_objects | hostile.filter(lambda value: isinstance(value, dict))), st.data()
)
def test_objects_are_anything(found, data):
    objects = {name: {**raw, "kind": data.draw(st.sampled_from(list(ObjectKind)))} for name, raw in found.items()}
    sound(facts_of(objects))


@examples(25)
@given(
    st.text(max_size=200),
    st.integers(0, 999),
    st.dictionaries(st.sampled_from(TEXTS), st.text(max_size=60)),
    json_values,
)
def test_texts_are_anything(body, status, texts, junk):
    objects = copy.deepcopy(HEALTHY)
    for raw in objects.values():
        raw.get("data", {}).update(texts)
    objects["Node/gpu-a"]["metadata"]["annotations"] = junk
    sound(facts_of(objects, readiness=HttpResponse(status, body), metrics=HttpResponse(status, body)))


def test_counts_are_anything():
    for count in ("1e999", "NaN", "-1", "1e", "+Inf", "0x1"):
        body = f'apiserver_admission_webhook_fail_open_count{{name="pods.vgpu-webhook.svc"}} {count}\n'
        sound(facts_of(copy.deepcopy(HEALTHY), metrics=HttpResponse(200, body)))

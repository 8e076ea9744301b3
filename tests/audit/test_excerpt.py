"""The excerpt of a pod is small and has no secret. That rules find the same in it shows tests/rules/test_reads.py."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.cases import each_case
from tests.examples import examples
from tests.pod.test_selectors import EXACT
from tests.reviewing import ALL_FAMILIES, snapshot
from webhook import names
from webhook.audit.excerpt import EXCERPT, MAX_TEXT
from webhook.errors import Malformed
from webhook.pod.selectors import MAX_WORD
from webhook.pod.view import PodView

SNAPSHOT = snapshot(*ALL_FAMILIES)


def excerpt_of(pod: Any) -> dict[str, Any]:
    return EXCERPT.of_pod(PodView(pod), SNAPSHOT.config.resources)


some = st.sampled_from
variables = "NVIDIA_VISIBLE_DEVICES CUDA_DISABLE_CONTROL CUDA_VERSION NVIDIA_REQUIRE_CUDA LD_PRELOAD PASSWORD"
env = st.fixed_dictionaries(
    {"name": some([*variables.split(), "ACTIVE_OOM_KILLER", ""])},
    optional={
        "value": some(["none", "void", "all", "secret", "", "/secret/libjemalloc.so", "libjemalloc.so:x"]),
        "valueFrom": st.just({"fieldRef": {}}),
    },
)
sources = st.fixed_dictionaries(
    {"configMapRef": st.just({"name": "settings"})}, optional={"prefix": some(["", "LD_", "APP_", "NPU_"])}
)
places = some(["/data", "../usr/local/vgpu", "/", "/var/run/nvidia-container-devices/0"])
mounts = st.fixed_dictionaries({"name": some(["v", "w"]), "mountPath": places})
devices = st.fixed_dictionaries({"name": some(["v", "w"]), "devicePath": some(["/dev/xvda", "/overrideEnv"])})
security = st.fixed_dictionaries(
    {}, optional={"privileged": st.booleans(), "capabilities": st.just({"add": ["SYS_ADMIN"], "drop": ["ALL"]})}
)
volumes = st.fixed_dictionaries(
    {"name": some(["v", "w"])},
    optional={"hostPath": st.fixed_dictionaries({"path": some(["/dev", "/data", "/usr/local/vgpu", "/proc/1/root"])})},
)
tolerations = st.fixed_dictionaries(
    {},
    optional={
        "key": some(["volcano.sh/vgpu", "other"]),
        "operator": some(["Exists", "Equal"]),
        "value": some(["", "true"]),
        "effect": some(["NoSchedule", "NoExecute"]),
    },
)
spec_fields = {
    "schedulerName": some(["volcano", "default-scheduler", "other", ""]),
    "nodeName": some(["node-1", ""]),
    "hostPID": st.booleans(),
    "hostIPC": st.booleans(),
    "tolerations": st.lists(tolerations, max_size=2),
    "volumes": st.lists(volumes, max_size=2),
}
container_fields = {
    "env": st.lists(env, max_size=3),
    "envFrom": st.lists(sources, max_size=2),
    "volumeMounts": st.lists(mounts, max_size=2),
    "volumeDevices": st.lists(devices, max_size=2),
    "securityContext": security,
    "restartPolicy": some(["Always"]),
    "image": st.just("image"),
}


@st.composite
def rich_pods(draw: st.DrawFn) -> dict[str, Any]:
    """A pod with all fields that rules read, and with some that no rule reads."""
    pod = draw(strategies.pods())
    pod["spec"] |= draw(st.fixed_dictionaries({"restartPolicy": st.just("Never")}, optional=spec_fields))
    for container in [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]:
        container.update(draw(st.fixed_dictionaries({}, optional=container_fields)))
    keys = [*sorted(names.RESERVED_ANNOTATIONS), "nvidia.cdi.k8s.io/x", "team/x"]
    reserved = st.dictionaries(some(keys), some(["", "x"]), max_size=2)
    pod["metadata"].setdefault("annotations", {}).update(draw(reserved))
    return pod


@examples(60)
@given(st.fixed_dictionaries({"spec": strategies.json_values, "metadata": strategies.json_values}))
def test_any_json_is_malformed_or_has_an_excerpt(pod: dict[str, Any]):
    try:
        kept = excerpt_of(pod)
    except Malformed:
        return
    json.dumps(kept)


def selector_of(pod: dict[str, Any]) -> Any:
    return PodView(pod).selector


@examples(100)
@given(strategies.mangled(strategies.selectors.filter(bool)) | strategies.selectors)
def test_the_excerpt_has_the_same_selector_as_the_pod(spec: dict[str, Any]):
    assert selector_of(excerpt_of({"spec": spec})) == selector_of({"spec": spec})


@each_case("spec", EXACT)
@each_case("more", [{}, {"one-more": "a"}, {"": "a"}, {"a": None}])
def test_a_selector_is_kept_up_to_its_limit_and_a_longer_one_is_dropped(spec: dict[str, Any], more: dict[str, Any]):
    pod = {"spec": {**spec, "nodeSelector": {**spec.get("nodeSelector", {}), **more}}}
    kept = excerpt_of(pod)
    assert selector_of(kept) == selector_of(pod)
    assert ("affinity" in kept["spec"] or "nodeSelector" in kept["spec"]) is not bool(more)


@pytest.mark.parametrize("length", [MAX_WORD, MAX_WORD + 1, MAX_TEXT + 1])
@pytest.mark.parametrize("place", ["key", "operator", "values"])
def test_a_selector_with_a_long_word_is_unknown_also_in_the_excerpt(place: str, length: int):
    word: Any = "x" * length
    right = {"key": "zone", "operator": "In", "values": ["a"]}
    wrong = {**right, place: [word] if place == "values" else word}
    for spec in (
        {"affinity": strategies.affinity([{"matchExpressions": [right, wrong]}])},
        {"nodeSelector": {"zone": "a", **({word: "a"} if place == "key" else {"x": word})}},
    ):
        assert (selector_of({"spec": spec}) is None) is (length > MAX_WORD)
        assert selector_of(excerpt_of({"spec": spec})) == selector_of({"spec": spec})


def test_the_excerpt_drops_nested_values_in_a_selector():
    nested: Any = "secret"
    for _ in range(500):
        nested = {"a": [nested]}
    expression = {"key": nested, "operator": nested, "values": [nested], "more": nested}
    term = {"matchExpressions": [expression, nested], "matchFields": nested, "more": nested}
    affinity = {**strategies.affinity([term]), "podAffinity": nested}
    labels = {names.VNPU_LEVEL: nested}
    spec = {"nodeSelector": {"a": nested, "b": "c"}, "affinity": affinity}
    kept = excerpt_of({"metadata": {"labels": labels}, "spec": spec})
    assert "secret" not in json.dumps(kept)
    assert kept["spec"]["nodeSelector"] == {"b": "c"}
    assert "affinity" not in kept["spec"]

"""What pods ask for in the names of other systems keeps its meaning, and only such pods are sent because of them."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.deploy.calling import called
from tests.deploy.clusters import Cluster, assert_sent, cluster, request
from tests.reviewing import snapshot
from webhook import names
from webhook.devices.config_file import parse_device_config
from webhook.devices.dialects import DIALECTS, Dialect, Place, Word
from webhook.devices.families import Role
from webhook.pod.view import PodView
from webhook.policy.policy import parse_policy
from webhook.review.repair import Repair
from webhook.rules.dialects import Step, dialect_steps
from webhook.rules.mutate import translate_dialect
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.wire.codec import creation

TRANSLATING = dict.fromkeys(DIALECTS, "translate")
CARD = 24_000  # MiB
# So that a percentage can become memory.
FLEET = {"declared": [{"name": "new", "cards": [{"type": "A100", "memory": CARD}]}]}

few = st.integers(1, 8)
mebibytes = st.integers(0, 40_000)
percent = st.integers(0, 100)
AMOUNTS = {
    "nvidia.com/gpu": few,
    "nvidia.com/gpumem": mebibytes,
    "nvidia.com/gpumem-percentage": percent,
    "nvidia.com/gpucores": percent,
    "nvidia.com/priority": st.integers(0, 1),
    "aliyun.com/gpu-mem": st.integers(0, 80),
    "aliyun.com/gpu-core.percentage": percent,
    "volcano.sh/gpu-mem.128Mi": st.integers(0, 300),
    "tencent.com/vcuda-core": st.integers(0, 300),
}
NOTES = {
    "gpu-fraction": st.decimals(0, 1, places=2).map(str),
    "gpu-memory": mebibytes.map(str),
    "gpu-fraction-num-devices": few.map(str),
    "nvidia.com/vgpu-mode": st.sampled_from(["mig", "mps"]),
    "nvidia.com/use-gpuuuid": st.just("GPU-1"),
    "hami.io/gpu-scheduler-policy": st.just("spread"),
}
SCHEDULERS = st.sampled_from(["", "volcano", "default-scheduler", "hami-scheduler", "kai-scheduler", "mine"])


def pod(limits: dict[str, Any], annotations: Any = None, labels: Any = None, scheduler: str = "") -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "i", "resources": {"limits": limits}}]}
    spec |= {"schedulerName": scheduler} if scheduler else {}
    metadata = {"name": "pod", "annotations": annotations or {}, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


foreign_pods = st.builds(
    pod,
    st.fixed_dictionaries({}, optional={name: amounts.map(str) for name, amounts in AMOUNTS.items()}),
    st.fixed_dictionaries({}, optional=NOTES),
    st.fixed_dictionaries({}, optional={"aliyun.com/gpu-count": few.map(str)}),
    SCHEDULERS,
)


def read(raw: dict[str, Any], policy: Any, **nvidia: Any) -> ReviewedPod:
    known = snapshot(config=parse_device_config({"nvidia": nvidia}, "config"), **policy)
    return ReviewedPod(PodView(raw), known.context_of(creation("u", "v1", "Pod", "default", raw)))


def translated(raw: dict[str, Any], **nvidia: Any) -> dict[str, Any]:
    pod = read(raw, {"dialects": TRANSLATING, "fleet": FLEET}, **nvidia)
    return dict(Repair(pod, [translate_dialect.propose]).draft.object)


def slices(raw: dict[str, Any], factor: int) -> tuple[int, Fraction, int] | None:
    """The number of slices, the memory of each in MiB and its cores, as Volcano reads them; None if there are none."""
    limits = raw["spec"]["containers"][0]["resources"]["limits"]
    if names.VGPU_NUMBER not in limits:
        return None
    number, memory, cores, share = (
        int(limits.get(name, 0))
        for name in (names.VGPU_NUMBER, names.VGPU_MEMORY, names.VGPU_CORES, names.VGPU_MEMORY_PERCENTAGE)
    )
    return number, Fraction(CARD * share, 100) if share else Fraction(memory * factor or CARD), cores


def of_hami(limits: dict[str, int]) -> tuple[int, Fraction, int]:
    """What HAMi gives, by its GenerateResourceRequests, Fit and webhook with the defaults of its chart."""
    memory, share = limits.get("nvidia.com/gpumem", 0), limits.get("nvidia.com/gpumem-percentage", 0)
    size = Fraction(memory) if memory else Fraction(CARD * (share or 100), 100)
    alone = "nvidia.com/gpumem" not in limits if "nvidia.com/gpumem-percentage" not in limits else share == 100
    cores = limits.get("nvidia.com/gpucores", 100 if alone and "nvidia.com/gpumem" not in limits else 0)
    return limits.get("nvidia.com/gpu", 1), size, cores


@given(st.fixed_dictionaries({}, optional={name: each for name, each in AMOUNTS.items() if "nvidia" in name}), few)
def test_amounts_of_hami_keep_their_meaning_or_are_left(limits: dict[str, int], factor: int):
    sized = {name: amount for name, amount in limits.items() if name != "nvidia.com/priority"}
    found = slices(translated(pod(limits), gpuMemoryFactor=factor), factor)
    if found is None:
        memory = limits.get("nvidia.com/gpumem", 0)
        assert memory % factor or not any(sized.values())
    else:
        assert found == of_hami(limits)


@given(st.integers(1, 80), few, few)
def test_gibibytes_of_aliyun_keep_their_meaning_or_are_left(gibibytes: int, cards: int, factor: int):
    raw = pod({"aliyun.com/gpu-mem": str(gibibytes)}, labels={"aliyun.com/gpu-count": str(cards)})
    found = slices(translated(raw, gpuMemoryFactor=factor), factor)
    if found is None:
        assert gibibytes * 1024 % (cards * factor)
    else:
        assert found == (cards, Fraction(gibibytes * 1024, cards), 0)


@given(st.decimals(0, 1, places=3, allow_nan=False), few)
def test_fractions_of_kai_keep_their_meaning_or_are_left(fraction: Any, cards: int):
    found = slices(translated(pod({}, {"gpu-fraction": str(fraction), "gpu-fraction-num-devices": str(cards)})), 1)
    if found is None:
        assert fraction in (0, 1) or fraction * 100 % 1
    else:
        assert found == (cards, CARD * Fraction(str(fraction)), 0)


@given(foreign_pods)
def test_a_second_translation_changes_nothing(raw: dict[str, Any]):
    once = translated(raw)
    assert translated(once) == once


AMOUNTS_OF_HAMI = [name for name in AMOUNTS if name.startswith("nvidia.com/") and name != "nvidia.com/priority"]


@given(st.sampled_from(AMOUNTS_OF_HAMI), st.integers(0, 20), few)
def test_a_pod_with_a_misspelt_or_misplaced_amount_is_left(name: str, place: int, amount: int):
    right = {each: str(amount) for each in AMOUNTS_OF_HAMI if each != name}
    cut = min(place + len("nvidia.com/"), len(name))
    misspelt = pod(right | {f"{name[:cut]}x{name[cut:]}": "1"})
    for raw in (misspelt, pod(right, {name: "1"}), pod(right, labels={name: "1"})):
        assert translated(raw) == raw
    assert translated(pod(right)) != pod(right)


def using(dialect: Dialect, word: Word) -> dict[str, Any]:
    """A pod that asks for a share in a dialect, and has one of its words, too."""
    share = next(each for each in dialect.words if each.role in (Role.MEMORY, Role.CORES))
    places: dict[Place, dict[str, Any]] = {place: {} for place in Place}
    for each in (share, word):
        fraction = each.role is Role.PERCENTAGE and each.place is Place.ANNOTATION
        value = "0.5" if fraction else each.values[0] if each.values else "2Gi" if each.unit < 1 else "2"
        places[each.place][each.name.format("main")] = value
    notes = places[Place.ANNOTATION] | places[Place.CONTAINER_ANNOTATION]
    raw = pod(places[Place.RESOURCE], notes, places[Place.LABEL], next(iter(dialect.schedulers), ""))
    raw["spec"]["containers"][0]["env"] = [{"name": name} for name in places[Place.VARIABLE]]
    return raw


def told(raw: dict[str, Any], dialect: Dialect) -> list[Step]:
    pod = read(raw, {})
    return dict(dialect_steps(pod, pod.context))[dialect]


EVERY_WORD = [(dialect, word) for dialect in DIALECTS.values() for word in dialect.words]


@pytest.mark.parametrize(
    ("dialect", "word"), EVERY_WORD, ids=lambda each: getattr(each, "name", getattr(each, "id", ""))
)
def test_each_name_of_a_system_is_translated_or_refused_with_a_reason(dialect: Dialect, word: Word):
    name = word.name.format("main")
    steps = [step for step in told(using(dialect, word), dialect) if any(name in each for each in step.words)]
    assert steps or word.here == name
    assert all(step.here or step.why for step in steps)
    assert word.role is None or not [step for step in steps if step.blocks]


@pytest.mark.parametrize(
    ("dialect", "prefix"), [(dialect, prefix) for dialect in DIALECTS.values() for prefix in dialect.prefixes]
)
def test_a_name_below_a_prefix_that_is_not_understood_stops_the_translation(dialect: Dialect, prefix: str):
    for place in (Place.RESOURCE, Place.ANNOTATION, Place.LABEL):
        unknown = Word(f"{prefix}9-of-tomorrow-that-nobody-knows", place)
        steps = told(using(dialect, unknown), dialect)
        assert [step.blocks for step in steps if any(unknown.name in each for each in step.words)] == [True], place
        assert any(step.here for step in steps)


# --- what is sent -----------------------------------------------------------------------------------------------------


def with_dialects(**dialects: str) -> Cluster:
    entry = {"match": ["somewhere"], "dialects": dialects}
    return cluster(policy=parse_policy({"dialects": dict.fromkeys(DIALECTS, "off"), "namespaces": [entry]}, "policy"))


WARNING = cluster()
POLICIES = [WARNING, with_dialects(), with_dialects(hami="translate"), with_dialects(kai="translate", aliyun="warn")]


@given(foreign_pods, st.integers(0, len(POLICIES) - 1), st.sampled_from(["default", "somewhere"]))
def test_each_pod_that_is_told_or_translated_is_sent(raw: dict[str, Any], policy: int, namespace: str):
    assert_sent(request(raw, namespace=namespace), POLICIES[policy])


def test_a_card_of_nvidias_own_plugin_is_sent_to_be_translated_only_where_some_namespace_translates():
    plain, share = request(pod({"nvidia.com/gpu": "1"})), request(pod({"nvidia.com/gpumem": "1"}))
    for where, mutated, validated in (
        (WARNING, set(), {"dialects"}),
        (with_dialects(kai="translate"), {"translate"}, {"dialects"}),  # whichever dialect it is
        (with_dialects(hami="translate"), {"translate"}, {"dialects"}),
        (with_dialects(), set(), set()),
    ):
        assert called(where.entries, plain, "/mutate") == called(where.entries, share, "/mutate") == mutated
        assert called(where.entries, plain, "/validate") == {"dialects"}  # for resource-not-offered
        assert called(where.entries, share, "/validate") == validated


def test_a_pod_that_names_both_is_sent_once():
    both = request(pod({names.VGPU_NUMBER: "1", "nvidia.com/gpumem": "1"}))
    where = with_dialects(hami="translate")
    assert (called(where.entries, both, "/mutate"), called(where.entries, both, "/validate")) == ({"repair"}, {"pods"})

"""The laws: each takes a random scenario, and raises an AssertionError if it breaks it.

Where a rule's own words say that more may be refused, the law leaves that rule out, with the reason.
"""

import json
import random
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

from tests.properties.scenarios import CARDS, LEVELS, SHORT, Scenario
from webhook import names
from webhook.devices.families import Family
from webhook.devices.requests import requested_families
from webhook.document_review import review_document
from webhook.inputs.documents import Document
from webhook.outcome import Outcome, Violation
from webhook.pod.view import PodView
from webhook.review.endpoints import mutate
from webhook.rules.base import concerns
from webhook.rules.registry import DEFAULT_LEVELS, VALIDATIONS
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.server.admission import ENDPOINTS
from webhook.wire import codec

__all__ = ["LAWS"]

Law = Callable[[Scenario, random.Random], None]
EXCEPTION = {"namespace": "team-a", "names": ["*"], "until": "2026-12-31", "reason": "a test", "owner": "tests"}


def refused(outcome: Outcome, but: Callable[[Violation], bool] = lambda _: False) -> dict[str, list[str]]:
    """The rules that refuse, each with its messages, but some findings."""
    found: dict[str, list[str]] = {}
    for violation in outcome.denials:
        if not but(violation):
            found.setdefault(violation.rule, []).append(violation.message)
    return found


def found(outcome: Outcome) -> list[tuple[str, str, str]]:
    """What is found, without where."""
    return sorted((violation.rule, violation.level.value, violation.message) for violation in outcome.violations)


def repaired(scenario: Scenario) -> Scenario:
    """The scenario with the repaired pod."""
    return scenario.but(pod=json.loads(json.dumps(mutate(scenario.request, scenario.snapshot).object)))


# --- repairs --------------------------------------------------------------------------------------------------------


def a_second_repair_changes_nothing(scenario: Scenario, _chance: random.Random) -> None:
    once = repaired(scenario)
    again = mutate(once.request, once.snapshot)
    assert not again.operations, again.operations


def a_repair_keeps_every_request(scenario: Scenario, _chance: random.Random) -> None:
    """A container that requests a device still does; one that requests none gets none.

    vGPU memory of 0 is a whole card for the scheduler, and a misspelt count may be one.
    """
    once = repaired(scenario)
    roles = scenario.config.roles_for(scenario.pod["metadata"]["labels"])
    dialects = scenario.policy.get("dialects")
    for before, after in zip(PodView(scenario.pod).containers, PodView(once.pod).containers, strict=True):
        had, has = requested_families(before, roles), requested_families(after, roles)
        assert had <= has, f"{before.name}: {had} became {has}"
        assert has <= had or dialects or names.VGPU_MEMORY in before.limits, f"{before.name}: {had} became {has}"


CURED = {
    "default-number": {"count-missing"},
    "percentage-to-memory": {"percentage-unresolved"},
    "limits-from-requests": {"limits-missing"},
    "scheduler-name": {"foreign-scheduler"},
    "toleration": {"toleration-missing"},
}


def what_is_repaired_is_not_refused(scenario: Scenario, _chance: random.Random) -> None:
    """A repair cures what it is for, and makes nothing that is refused: with it switched off, the pod is refused, too.

    A translation is left out where the nodes have no room for what the author asks for in the other names. An NPU gives the
    memory of a template, which may be more than the policy allows: `outside-limits` of containers that the repair changes.
    """
    outcome = scenario.review()
    for rule in outcome.mutations:
        if len(scenario.pod["spec"]["containers"]) == 1:
            assert CURED.get(rule, set()).isdisjoint(refused(outcome)), (rule, refused(outcome))
        without = scenario.with_policy(repairs={rule: "off"}).review()
        made = refused(outcome)
        if rule == "translate-dialect":
            alone = len(scenario.pod["spec"]["containers"]) == 1
            made = {each: made[each] for each in made if alone and each == "percentage-unresolved"}
        elif "translate-dialect" in outcome.mutations and "translate-dialect" not in without.mutations:
            continue
        if rule == "ascend-memory-template":
            both = zip(outcome.object["spec"]["containers"], without.object["spec"]["containers"], strict=True)
            changed = {at for at, (one, other) in enumerate(both) if one != other}
            made = refused(outcome, but=partial(_is_limit_of, changed))
        assert not without.allowed or not made, f"only with {rule}: {made}"


def _is_limit_of(containers: set[int], violation: Violation) -> bool:
    return violation.rule == "outside-limits" and _container(violation) in containers


def _container(violation: Violation) -> int:
    """The number of the container that a finding is about."""
    found = re.match(r"spec\.containers\[(\d+)\]", violation.path)
    assert found is not None, violation
    return int(found[1])


# --- what is unrelated ----------------------------------------------------------------------------------------------


def what_is_unrelated_changes_nothing(scenario: Scenario, chance: random.Random) -> None:
    """A label, an annotation and sidecars that request nothing."""
    pod = deepcopy(scenario.pod)
    pod["metadata"]["labels"]["team"] = "a"
    pod["metadata"]["annotations"]["example.com/note"] = "1"
    limits = chance.choice(
        [{}, {"cpu": "1"}, {names.VGPU_CORES: "0"}, {names.VGPU_MEMORY_PERCENTAGE: "0"}, {names.GPUSHARE_MEMORY: "0"}]
    )
    pod["spec"]["containers"].append(
        {"name": "sidecar", "image": "a", "resources": {"limits": limits, "requests": limits}}
    )
    before, after = scenario.review(), scenario.but(pod=pod).review()
    assert found(before) == found(after), (found(before), found(after))
    assert set(before.mutations) - {"hide-devices"} == set(after.mutations) - {"hide-devices"}


def no_order_counts(scenario: Scenario, chance: random.Random) -> None:
    """Not that of nodes, nor of containers, but where the words of a rule say so: `fits-tightly`, KAI's and MindCluster's first
    container.

    Nor where the scheduler's own verdict depends on it. It counts a MIG instance with all its memory, but demands of the card
    only what the container requests, so the last slice of a card may take a larger instance than is left. So the order decides
    whether a node has room for several containers with vGPUs, and what memory repairs write.
    """
    before = scenario.review()
    nodes = chance.sample(scenario.nodes, len(scenario.nodes)) if scenario.nodes else None
    after = scenario.but(nodes=nodes).review()
    rules = sorted({(v.rule, v.level) for v in before.violations if v.rule != "fits-tightly"})
    assert rules == sorted({(v.rule, v.level) for v in after.violations if v.rule != "fits-tightly"})
    assert before.object == after.object
    if "gpu-fraction" in scenario.pod["metadata"]["annotations"] or names.NPU_CORE in str(scenario.pod["spec"]):
        return
    order = [*range(len(scenario.pod["spec"]["containers"]))]
    chance.shuffle(order)
    once, others = repaired(scenario), repaired(scenario.but(pod=_in_order(scenario.pod, order)))
    expected = _in_order(once.pod, order)
    served = [one for one in PodView(once.pod).containers if {names.VGPU_NUMBER, names.VGPU_MEMORY} & one.limits.keys()]
    room = ",mig:" in str(scenario.nodes) and len(served) > 1
    for one, other in zip(expected["spec"]["containers"], others.pod["spec"]["containers"], strict=True):
        for part in ("limits", "requests") if room else ():
            for name in (names.VGPU_MEMORY, names.VGPU_MEMORY_PERCENTAGE):
                one["resources"][part].pop(name, None), other["resources"][part].pop(name, None)
    assert expected == others.pod, (expected, others.pod)
    ignored = {"fits-no-node", "status-too-large"} if room else set()
    first, second = refused(once.validate()), refused(once.but(pod=_in_order(once.pod, order)).validate())
    assert first.keys() - ignored == second.keys() - ignored, (first, second)


def _in_order(pod: dict[str, Any], order: list[int]) -> dict[str, Any]:
    """A copy of the pod with its containers in another order."""
    changed = deepcopy(pod)
    changed["spec"]["containers"] = [changed["spec"]["containers"][at] for at in order]
    return changed


# --- fleets ---------------------------------------------------------------------------------------------------------


def _left_by(outcome: Outcome, pod: dict[str, Any]) -> dict[str, list[str]]:
    """The rules that refuse with more nodes, but what their words say that nodes decide.

    The cards of the nodes may differ, so that a percentage is ambiguous. And of limits the cards that a container may get, and
    the size of a whole one or of a part of it, but not vGPU memory that the author wrote.
    """

    def decided_by_nodes(violation: Violation) -> bool:
        if violation.rule == "percentage-unresolved":
            return "but the cards differ (" in violation.message
        if violation.rule != "outside-limits":
            return False
        size = _MEMORY.search(violation.message)
        if size is None:
            return _CARD.search(violation.message) is not None
        limits = pod["spec"]["containers"][_container(violation)]["resources"]["limits"]
        return size[1] is None or size[1] != limits.get(names.VGPU_MEMORY)

    return refused(outcome, decided_by_nodes)


_CARD = re.compile(r"may get (\d+ × )?\"NVIDIA")
_MEMORY = re.compile(rf"requests (?:{names.VGPU_MEMORY} (\d+)|no {names.VGPU_MEMORY} and so gets a whole device of )")


def one_more_node_refuses_nothing(scenario: Scenario, chance: random.Random) -> None:
    """But kubelets that write units, of nodes that can get the pod; and a resource that no other node offers: without the node,
    the rule `resource-not-offered` warns that the pod waits for ever.
    """
    if not scenario.nodes or len(scenario.nodes) < 2:
        return
    fewer = scenario.but(nodes=scenario.nodes[:-1])
    if not fewer.review().allowed or not _selects(fewer):
        return
    left = _left_by(scenario.review(), scenario.pod)
    if UNOFFERED & {each.rule for each in fewer.review().violations}:
        left.pop("fits-no-node", None)
    if "status of a pod" in str(left) or "kubelet writes" in str(left):
        alone = scenario.but(nodes=[_with_kubelet(scenario.nodes[-1], "v1.35.0")])
        resized = names.VGPU_MEMORY_PERCENTAGE in str(
            scenario.pod["spec"]
        )  # a percentage of other cards is another amount
        if alone.but(pod=repaired(fewer).pod).validate().allowed or (resized and alone.review().allowed):
            return
    assert not left, left


def _selects(scenario: Scenario) -> bool:
    """Whether the selector of the pod leaves a node: otherwise it is judged by all, as its words say."""
    wanted = scenario.pod["spec"].get("nodeSelector")
    return not wanted or any(wanted.items() <= node["metadata"]["labels"].items() for node in scenario.nodes or ())


def _with_kubelet(node: dict[str, Any], version: str) -> dict[str, Any]:
    return {**node, "status": {**node["status"], "nodeInfo": {"kubeletVersion": version}}}


def declared_nodes_refuse_nothing(scenario: Scenario, _chance: random.Random) -> None:
    """Nodes of `fleet.declared` only make room."""
    fleet = {**scenario.policy.get("fleet", {}), "declared": []}
    if scenario.nodes is None or not scenario.with_policy(fleet=fleet).review().allowed:
        return
    left = _left_by(scenario.review(), scenario.pod)
    assert not left, left


UNOFFERED = {
    "resource-not-offered",
    "foreign-dialect",
}  # which warn of a name that no node offers: the pod waits for ever
NODES_DECIDE = {  # what `fleet` rules say, and what needs the nodes beside them
    "card-count", "no-eligible-card", "memory-above-card", "split-count", "fits-no-node", "unknown-resource",
    "ascend-core-invalid", "family-mixed", "resource-not-offered",
}  # fmt: skip


def what_the_fleet_admits_some_node_admits(scenario: Scenario, _chance: random.Random) -> None:
    """Of what the nodes decide."""
    if not scenario.nodes or scenario.policy.get("fleet", {}).get("declared") or "zone" in str(scenario.pod["spec"]):
        return
    scenario = repaired(scenario)
    if scenario.validate().allowed and scenario.snapshot.fleet is not None:
        alone = [refused(scenario.but(nodes=[node]).validate()) for node in scenario.nodes]
        assert any(NODES_DECIDE.isdisjoint(one) for one in alone), alone


def a_node_that_cannot_get_the_pod_decides_nothing(scenario: Scenario, _chance: random.Random) -> None:
    """What one node alone admits, of the same repaired pod, is not refused because of the others.

    But for what kubelets write, and for the cards that the pod may get, if another node can get the pod; and for a resource
    that the node does not offer.
    """
    for number, node in enumerate(scenario.nodes or ()):
        if not _selects(scenario.but(nodes=[node])):
            continue
        alone = scenario.but(nodes=[node])
        if alone.policy.get("fleet", {}).get("declared") or not alone.review().allowed:
            continue
        pod = repaired(alone)
        unlimited = pod.with_policy(namespaces=[])  # a node whose cards the policy does not allow can get the pod, too
        others = [one for at, one in enumerate(scenario.nodes or ()) if at != number]
        able = [
            one
            for one in others
            if _selects(pod.but(nodes=[one]))
            and unlimited.but(nodes=[_with_kubelet(one, "v1.35.0")]).validate().allowed
        ]
        outcome = scenario.but(pod=pod.pod).validate()
        left = _left_by(outcome, pod.pod) if able else refused(outcome)
        if able:
            left.pop("status-too-large", None)
        if UNOFFERED & {each.rule for each in alone.review().violations}:
            left.pop("fits-no-node", None)
        assert not left, left


# --- rules ----------------------------------------------------------------------------------------------------------


def missed(pod: ReviewedPod) -> dict[str, list[str]]:
    """What rules find that are not run, as the pod or the cluster lacks a fact that they need."""
    effective = pod.context.effective
    run, on = {rule.id for rule, _ in effective.for_pod(pod)}, ("", *effective.repairs_off)
    others = [rule for rule in VALIDATIONS if rule.id not in run and rule.reads_pods and rule.instead_of in on]
    about = [rule for rule in others if concerns(rule.families, pod.requested) and pod.context.reports(rule.id)]
    found = {rule.id: [finding.detail for finding in rule.check(pod, pod.context)] for rule in about}
    return {rule: details for rule, details in found.items() if details}


def a_rule_without_what_it_needs_finds_nothing(scenario: Scenario, _chance: random.Random) -> None:
    for pod in (scenario.pod, repaired(scenario).pod):
        found = missed(ReviewedPod(PodView(pod), scenario.snapshot.context_of(scenario.request)))
        assert not found, found


# --- policies -------------------------------------------------------------------------------------------------------


def a_milder_level_refuses_no_more(scenario: Scenario, chance: random.Random) -> None:
    before = scenario.review()
    rule = chance.choice([*refused(before), *sorted(DEFAULT_LEVELS)])
    order, given = chance.sample(LEVELS, 2), scenario.policy.get("rules", {})
    milder, stricter = sorted(order, key=LEVELS.index)
    some, more = (scenario.with_policy(rules={**given, rule: level}).review() for level in (milder, stricter))
    assert some.allowed or not more.allowed, f"{rule}: {milder} refuses {refused(some)}"


def stricter_card_limits_admit_no_more(scenario: Scenario, chance: random.Random) -> None:
    """One more kind of cards that is denied, or one fewer that is allowed, and fewer of them."""
    kinds = [{"type": kind.split()[-1]} for kind, _ in CARDS] + [{"family": family.value} for family in Family]
    entries = [{**kind, **chance.choice([{}, {"count": 1}, {"count": 2}, {"count": 4}])} for kind in kinds]
    deny, allow = (chance.sample(entries, chance.choice([0, 1, 2, 3])) for _ in range(2))
    one = chance.choice(entries)
    fewer = [
        ([*deny, one], allow),
        ([{**each, "count": 1} for each in deny], allow),
        (deny, [each for each in allow if each is not one] or allow or [one]),
        (deny, [{**each, "count": min(each.get("count", 4), 1)} for each in allow]),
    ]
    milder, stricter = (
        scenario.with_policy(
            namespaces=[{"match": ["*"], "limits": {"cards": {"deny": no} | ({"allow": yes} if yes else {})}}]
        )
        for no, yes in ((deny, allow), chance.choice(fewer))
    )
    some, more = milder.review(), stricter.review()
    assert some.allowed or not more.allowed, f"{milder.policy} refuses {refused(some)}, {stricter.policy} does not"


def a_stricter_policy_admits_no_more(scenario: Scenario, chance: random.Random) -> None:
    """Of memory above the cards, of a percentage where the cards differ, and of the least and most that `limits` allow.

    Limits bound what the author wrote. A default keeps them, so that it may fit only because of them.
    """
    low, high = sorted(chance.sample([1, 2, 10, 30, 1000, 4000, 20000], 2))
    role = chance.choice(["memory", "cores", "number"])
    limits = chance.choice([({"max": high}, {"max": low}), ({"min": low}, {"min": high}), ({}, {"max": low})])
    keys, *both = chance.choice(
        [
            ("memoryAboveCard", "clamp", "deny"),
            ("percentage", {"mixedCards": chance.choice(["smallest", "largest"])}, {"mixedCards": "deny"}),
            ("namespaces", *([{"match": ["*"], "limits": {role: limit} if limit else {}}] for limit in limits)),
        ]
    )
    milder, stricter = (scenario.with_policy(**{keys: value}) for value in both)
    some, more = milder.review(), stricter.review()
    if "translate-dialect" in {*some.mutations} - {*more.mutations}:
        return  # nothing judges what is not translated
    if keys == "namespaces" and f"default-{role}" in more.mutations:
        return
    assert some.allowed or not more.allowed, f"{milder.policy} refuses {refused(some)}, {stricter.policy} does not"


def an_exception_is_the_level_audit(scenario: Scenario, chance: random.Random) -> None:
    """Both let one rule pass, and none that relies on it."""
    rule = chance.choice(sorted(refused(scenario.review()) or DEFAULT_LEVELS))
    given, rules = scenario.policy.get("exceptions", []), scenario.policy.get("rules", {})
    audited = scenario.with_policy(rules={**rules, rule: "audit"}).review()
    excepted = scenario.with_policy(exceptions=[*given, {**EXCEPTION, "rules": [rule]}]).review()
    assert refused(audited) == refused(excepted), (rule, refused(audited), refused(excepted))


def a_doubt_refuses_no_more(scenario: Scenario, chance: random.Random) -> None:
    """Unknown nodes, and nodes that may come; but a percentage of cards that are not known, as the rule says."""
    if scenario.nodes is None:
        return
    scenario = scenario.with_policy(memoryAboveCard="deny", fleet={})
    autoscaled = scenario.with_policy(fleet={"autoscaled": True})
    doubtful = scenario.but(nodes=None) if chance.random() < 0.5 else autoscaled
    if scenario.review().allowed:
        outcome = doubtful.review()
        left = refused(outcome)
        if "translate-dialect" not in outcome.mutations:
            left.pop("percentage-unresolved", None)
        assert not left, left


# --- entries --------------------------------------------------------------------------------------------------------


def every_entry_answers_alike(scenario: Scenario, _chance: random.Random) -> None:
    """`review` of a manifest, mutate and validate, and the endpoints of the server on bytes."""
    snapshot = scenario.with_policy(exceptions=[]).snapshot
    sent = {**scenario.request._asdict()}
    first = codec.decode(_body(scenario.pod))
    repaired_pod = ENDPOINTS["/mutate"][1](first, snapshot)
    judged = ENDPOINTS["/validate"][1](codec.decode(_body(repaired_pod.object)), snapshot)
    manifest = {**scenario.pod, "metadata": {**scenario.pod["metadata"], "namespace": sent["namespace"]}}
    reviewed = review_document(Document("pod.yaml", manifest), snapshot).outcome
    assert found(reviewed) == found(judged)
    assert reviewed.notices == repaired_pod.notices
    assert reviewed.object["spec"] == repaired_pod.object["spec"]
    assert reviewed.allowed == judged.allowed


def _body(pod: Any) -> bytes:
    sent = {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "namespace": "team-a",
        "userInfo": {"username": "ann", "groups": []},
        "object": pod,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": sent}).encode()


# --- advice ---------------------------------------------------------------------------------------------------------

_NAME = r"([a-z0-9.-]+\.[a-z]+/[A-Za-z0-9._-]+)"
_RESOURCE = re.compile(r"spec\.containers\[(\d+)\]\.resources\.limits\[(.+)\]")
_AMOUNT = (
    re.compile(r"; write (\d+) or (?:less|more)\b"),
    re.compile(r"; write (\d+)(?:$| or a )"),
    re.compile(r"; request at most (\d+)\b"),
    re.compile(r"; request (\d+)(?: or fewer)?$"),
    re.compile(r"; did you mean (\d+)\?"),
    re.compile(r"; write (\d+) to \d+"),
)
TOGETHER = "of the pod together"  # in what is found of several families
_NAMED = (re.compile(rf"; write {_NAME} (\d+) or (?:less|more)"), re.compile(rf"; write {_NAME}: (\d+)"))


def followed(pod: dict[str, Any], outcome: Outcome) -> tuple[dict[str, Any], set[tuple[str, str]]]:
    """The pod with every piece of advice about an amount followed, the least one where several are about the same.

    Returns:
        The pod, and the findings that gave advice: (rule, path).
    """
    pod = deepcopy(pod)
    containers = pod["spec"]["containers"]
    advised: dict[tuple[int, str], int] = {}
    told = set()
    for violation in outcome.violations:
        if violation.rule == "foreign-dialect":
            continue  # its advice takes the place of other names
        for at, resource, amount in _advice(violation, containers):
            advised[at, resource] = min(amount, advised.get((at, resource), amount))
            told.add((violation.rule, violation.path))
    for (at, resource), amount in advised.items():
        for part in ("limits", "requests"):
            containers[at]["resources"][part][resource] = str(amount)
    return pod, told


def _advice(violation: Violation, containers: list[Any]) -> Iterator[tuple[int, str, int]]:
    """The container, the resource and the amount that a finding says to write."""
    place, message = _RESOURCE.fullmatch(violation.path), violation.message
    if place is None:
        served = [at for at, one in enumerate(containers) if names.VGPU_NUMBER in one["resources"]["limits"]]
        if len(served) == 1 and (found := re.search(r"; request at most (\d+)$", message)):
            yield served[0], names.VGPU_MEMORY, int(found[1])
        return
    at, resource = int(place[1]), place[2]
    named = next((match for pattern in _NAMED if (match := pattern.search(message))), None)
    if named is not None:
        yield at, named[1], int(named[2])
    elif match := next((match for pattern in _AMOUNT if (match := pattern.search(message))), None):
        yield at, resource, int(match[1])


def advice_works(scenario: Scenario, _chance: random.Random) -> None:
    """Who writes the amounts that the findings say does not read the same finding again, nor another about these amounts.

    Nothing else is judged while an amount cannot be read, so what comes after `quantity-invalid` is left out. So are pods
    in which several containers share what is advised, whether one node has room for all families, which is judged when each has
    a node, and a percentage beside another system's amount, of which `foreign-dialect` says that one of them has to go.
    """
    scenario = repaired(scenario)
    before = scenario.validate()
    pod, told = followed(scenario.pod, before)
    limits = [container["resources"]["limits"] for container in scenario.pod["spec"]["containers"]]
    alone = sum([any(name in each for name in SHORT.values()) for each in limits]) < 2
    shares = any([names.VGPU_MEMORY_PERCENTAGE in each for each in limits])  # which win over the memory
    wins = shares and (len(told) > 1 or "count-missing" in refused(before))
    if not told or wins or not alone:
        return
    after = scenario.but(pod=pod).review()
    said = {(each.rule, each.path): each.message for each in before.violations}
    again = {(each.rule, each.path): each.message for each in after.violations if TOGETHER not in each.message}
    assert told.isdisjoint(again), (said, again)
    paths = {path for _, path in told} - {path for rule, path in told if rule == "quantity-invalid"}
    later = {"percentage-unresolved"} if any(each.rule == "foreign-dialect" for each in before.violations) else set()
    denials = [each for each in after.denials if each.rule not in later]
    new = {(each.rule, each.path): each.message for each in denials if (each.rule, each.path) not in said}
    assert not {place for place in new if place[1] in paths}, (said, new)


# --- advice to workloads ---------------------------------------------------------------------------------------------


def workload_advice_works(scenario: Scenario, chance: random.Random) -> None:
    """Who writes the number of pods that a finding says, or the strategy, does not read the same finding again."""
    raw = _workload(scenario, chance)
    before = _reviewed(scenario, raw)
    for rule, message in before.items():
        changed = deepcopy(raw)
        if _follow(changed, rule, message):
            after = _reviewed(scenario, changed)
            assert rule not in after, (raw["spec"], message, after[rule])


def _reviewed(scenario: Scenario, raw: dict[str, Any]) -> dict[str, str]:
    """The messages by rule."""
    outcome = review_document(Document("workload.yaml", raw), scenario.snapshot).outcome
    return {violation.rule: violation.message for violation in outcome.violations}


def _workload(scenario: Scenario, chance: random.Random) -> dict[str, Any]:
    """A Volcano Job of one task, a Deployment or a StatefulSet of the scenario's pod; some start several pods together."""
    pod, minimum, replicas = deepcopy(scenario.pod), chance.choice([None, 1, 2, 3, 9]), chance.choice([1, 2, 3, 5, 9])
    pod["spec"]["containers"] = pod["spec"]["containers"][:1]
    metadata: dict[str, Any] = {"name": "w", "namespace": "team-a", "annotations": {}}
    if chance.random() < 0.4:
        job = {"tasks": [{"name": "a", "replicas": replicas, "template": pod}]} | (
            {"minAvailable": minimum} if minimum else {}
        )
        return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": job}
    if minimum:
        metadata["annotations"][names.GROUP_MIN_MEMBER] = str(minimum)
    spec = {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": pod}
    kind = chance.choice(["Deployment", "StatefulSet"])
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def _follow(raw: dict[str, Any], rule: str, message: str) -> bool:
    """Change a workload as a finding says; False if it says nothing about numbers of pods and strategies."""
    spec = raw["spec"]
    if parallel := "; use Parallel" in message:
        spec["podManagementPolicy"] = "Parallel"
    if rule in ("gang-too-large", "gang-never-complete") and (
        told := re.search(r"set (?:minAvailable|group-min-member|it) to (\d+)", message)
    ):
        if raw["kind"] == "Job":
            spec["minAvailable"] = int(told[1])
        else:
            raw["metadata"]["annotations"][names.GROUP_MIN_MEMBER] = told[1]
    elif rule == "rollout-needs-room" and (told := re.search(r"holds at most (\d+); request fewer", message)):
        spec["replicas"] = int(told[1])
        if "Recreate" in message or "maxUnavailable" in message:
            wider = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
            spec["strategy"] = {"type": "Recreate"} if "Recreate" in message else wider
    elif rule == "rollout-needs-room" and "maxUnavailable be 1" in message:
        spec["strategy"] = {"rollingUpdate": {"maxUnavailable": 1}}
    elif rule in ("rollout-needs-room", "gang-never-complete") and "strategy Recreate" in message:
        spec["strategy"] = {"type": "Recreate"}
    else:
        return parallel
    return True


LAWS: dict[str, Law] = {
    law.__name__: law
    for law in (
        a_second_repair_changes_nothing,
        a_repair_keeps_every_request,
        what_is_repaired_is_not_refused,
        what_is_unrelated_changes_nothing,
        no_order_counts,
        one_more_node_refuses_nothing,
        declared_nodes_refuse_nothing,
        what_the_fleet_admits_some_node_admits,
        a_node_that_cannot_get_the_pod_decides_nothing,
        a_milder_level_refuses_no_more,
        stricter_card_limits_admit_no_more,
        a_stricter_policy_admits_no_more,
        an_exception_is_the_level_audit,
        a_doubt_refuses_no_more,
        a_rule_without_what_it_needs_finds_nothing,
        every_entry_answers_alike,
        advice_works,
        workload_advice_works,
    )
}

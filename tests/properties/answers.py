"""The laws about the answers of `why` and `what-if`, whose advice is followed mechanically.

The clusters are random: nodes, pods that run, and a pod or a job that waits.
"""

import json
import random
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from tests.properties.laws import Law
from tests.properties.scenarios import Scenario
from tests.properties.scenarios import pod as random_pod
from webhook import names
from webhook.devices.ledger import BoundPod
from webhook.document_review import review_document
from webhook.errors import ConfigError
from webhook.inputs.documents import Document
from webhook.live.devices import LiveCluster
from webhook.live.objects import LiveObjects, PodGroup, read_node_status
from webhook.live.reader import LiveState
from webhook.policy.policy import parse_policy
from webhook.questions.what_if.answer import Headroom, WhatIf, what_if
from webhook.questions.what_if.changes import FleetChange, parse_addition
from webhook.questions.why.answer import WaitAnswer, explain_waiting
from webhook.questions.why.node_reasons import WaitVerdict
from webhook.questions.why.placing import Fate, PlaceablePod
from webhook.questions.why.subject import WaitingObject, pods_of
from webhook.questions.why.text import hints, nearest_words
from webhook.review.endpoints import mutate
from webhook.rules.context import Collections
from webhook.settings.snapshot import SnapshotInputs, read_nodes
from webhook.volcano import scheduler
from webhook.volcano.queues import Queue, Queues

RUNNING = 6  # pods at most
OWN = 0.3  # the share of scenarios whose own pod waits
CHIP = "huawei.com/Ascend310P"
USUAL = (
    {
        names.VGPU_NUMBER: [1, 1, 1, 2, 4],
        names.VGPU_MEMORY: [1000, 4000, 9728, 15360, 20000, 40000, 60000],
        names.VGPU_CORES: [0, 0, 30, 50, 100],
    },
    {names.GPUSHARE_MEMORY: [1000, 4000, 10000, 15360]},
    {CHIP: [1, 1, 2], f"{CHIP}-memory": [3000, 6000, 12000]},
)
FIRST = (names.VGPU_NUMBER, names.GPUSHARE_MEMORY, CHIP)
SWITCHES = (scheduler.VGPU, scheduler.SHARING, scheduler.ASCEND, scheduler.MINDCLUSTER)


@dataclass(frozen=True)
class Cluster:
    """A cluster and an object of which `why` is asked.

    Attributes:
        raw: the pod, or a job that is not applied yet.
        scenario: the settings and the nodes.
        bound: the pods that run.
        queue: the only one; None if the queues are not known.
        switches: of the scheduler's configuration; None if it is not known.
        missing_group: the PodGroup of the pod does not exist.
    """

    raw: dict[str, Any]
    scenario: Scenario
    bound: tuple[BoundPod, ...] = ()
    queue: Queue | None = None
    switches: tuple[str, ...] | None = None
    missing_group: bool = False

    @property
    def exists(self) -> bool:
        return self.raw["kind"] == "Pod"

    @property
    def inputs(self) -> SnapshotInputs:
        scenario, conf = self.scenario, None
        if self.switches is not None:
            plugins = [{"name": "gang"}, {"name": "capacity"}]
            plugins.append({"name": scheduler.DEVICESHARE, "arguments": dict.fromkeys(self.switches, True)})
            conf = scheduler.parse_scheduler_conf({"tiers": [{"plugins": plugins}]}, "test")
        queues = None if self.queue is None else Queues([self.queue])
        policy, nodes = parse_policy(scenario.policy, "the policy"), read_nodes(scenario.nodes or (), scenario.config)
        return SnapshotInputs(scenario.config, policy, nodes, conf, Collections(queues=queues))

    @property
    def live(self) -> LiveCluster:
        live = LiveCluster(self.inputs, self.inputs.snapshot(), self.bound)
        return live.with_statuses({raw["metadata"]["name"]: read_node_status(raw) for raw in self.scenario.nodes or ()})

    @property
    def subject(self) -> WaitingObject:
        annotations = self.raw["metadata"]["annotations"]
        lacks = annotations.get(names.GROUP_NAME, "") if self.missing_group else ""
        group = PodGroup("team-a", "g", queue="q") if self.queue is not None and self.exists else None
        return WaitingObject(Document("it", self.raw), self.exists, group=group, lacks_group=lacks, namespace="team-a")

    def ask(self) -> WaitAnswer | None:
        """The answer; None if there is none, as no device that is judged is requested."""
        try:
            return explain_waiting(self.subject, self.live)
        except ConfigError:
            return None

    def ahead(self, change: FleetChange) -> WhatIf:
        """What `what-if` answers."""
        live = self.live
        objects = LiveObjects(live.snapshot, bound=list(self.bound), keeps_running=True)
        objects.add(self.raw)
        return what_if(LiveState(live, objects), self.inputs, change)

    def with_copy(self, node: str, name: str) -> "Cluster":
        """The same with a copy of a node, which has cards of its own."""
        (raw,) = [raw for raw in self.scenario.nodes or () if raw["metadata"]["name"] == node]
        metadata = json.loads(json.dumps(raw["metadata"]).replace(f"GPU-{node}", f"GPU-{name}"))
        copied = {**raw, "metadata": {**metadata, "name": name}}
        return replace(self, scenario=self.scenario.but(nodes=[*(self.scenario.nodes or ()), copied]))

    def only(self, node: str) -> "Cluster":
        """The same with one of the nodes."""
        nodes = [raw for raw in self.scenario.nodes or () if raw["metadata"]["name"] == node]
        return replace(self, scenario=self.scenario.but(nodes=nodes))

    def refused(self) -> set[str]:
        """The rules that would refuse it, if it were created."""
        reviewed = review_document(Document("it", self.raw), self.live.snapshot, "team-a", ())
        return {one.rule for one in reviewed.outcome.denials} | set(reviewed.outcome.pods_refused)


def cluster(scenario: Scenario, chance: random.Random, *, exists: bool = True, hindered: bool = True) -> Cluster:
    """A scenario with pods that run where the scheduler may have placed them, and a pod that waits, or a job of it.

    The pod is that of the scenario, or a plain one.
    """
    raw = _created(scenario if chance.random() < OWN else scenario.but(pod=_plain(chance)))
    found = Cluster(raw, scenario)
    live, bound = found.live, []
    for number in range(chance.randint(0, RUNNING)):
        pod = _created(scenario.but(pod=_plain(chance)), f"r{number}")
        subject = replace(found, raw=pod).subject
        placeable = PlaceablePod(_reviewed(subject, live), subject, live)
        if placeable.families and placeable.obstacle is None:
            nodes, _ = placeable.find(live, live.in_order(placeable._ids, emptiest=chance.random() < 0.5))
            placed = placeable._bound(pod, live, nodes) if nodes else None
            if placed is not None:
                live, bound = live.with_pod(placed), [*bound, placed]
    found = replace(found, bound=tuple(bound))
    if not exists:
        found = replace(found, raw=_job(raw, chance))
        return _queued(found, "Open", "q", chance) if chance.random() < OWN else found
    return _hindered(found, chance) if hindered else found


def _plain(chance: random.Random) -> dict[str, Any]:
    """A pod with a usual request in one container, rarely in two."""
    pod = random_pod(chance)
    containers = []
    for number in range(chance.choices([1, 2], [9, 1])[0]):
        limits = {
            resource: str(chance.choice(amounts)) for resource, amounts in chance.choices(USUAL, [6, 1, 1])[0].items()
        }
        limits = {resource: amount for resource, amount in limits.items() if resource in FIRST or chance.random() < 0.7}
        containers.append(
            {"name": f"c{number}", "image": "a", "resources": {"limits": limits, "requests": dict(limits)}}
        )
    return {**pod, "metadata": {**pod["metadata"], "labels": {}}, "spec": {**pod["spec"], "containers": containers}}


def _created(scenario: Scenario, name: str = "waits") -> dict[str, Any]:
    pod = json.loads(json.dumps(mutate(scenario.request, scenario.snapshot).object))
    pod["metadata"] |= {"name": name, "namespace": "team-a", "uid": name}
    return {**pod, "status": {"phase": "Pending"}}


def _reviewed(subject: WaitingObject, live: LiveCluster) -> Any:
    reviewed = review_document(subject.document, live.snapshot, "team-a", ())
    ((_, pod),) = pods_of(subject, reviewed, live)
    return pod


def _hindered(found: Cluster, chance: random.Random) -> Cluster:
    """Sometimes something beside the devices keeps the pod from starting."""
    raw = deepcopy(found.raw)
    match chance.randrange(9):
        case 0:
            raw["spec"]["schedulerName"] = "kueue"
        case 1:
            raw["spec"]["schedulingGates"] = [{"name": names.QUEUE_GATE}]
        case 2:
            raw["metadata"]["annotations"][names.GROUP_NAME] = "gone"
            return replace(found, raw=raw, missing_group=True)
        case 3:
            return replace(found, switches=tuple(chance.sample(SWITCHES, chance.randrange(4))))
        case 4:
            return _queued(found, chance.choice(["Open", "Closed"]), chance.choice(["q", "q", "other"]), chance)
    return replace(found, raw=raw)


def _queued(found: Cluster, state: str, name: str, chance: random.Random) -> Cluster:
    """With a queue of some state and name; the pod's is `q`."""
    limit = {names.VGPU_NUMBER: 1 if found.exists else 10, names.VGPU_MEMORY: chance.choice([100, 10000, 100_000])}
    return replace(found, queue=Queue(name, state, capability=limit), switches=SWITCHES)


def _job(pod: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """A Volcano Job of the pod's first container, all of whose pods start together, with one task or two."""
    pod = {**pod, "spec": {**pod["spec"], "containers": pod["spec"]["containers"][:1]}}
    tasks = [
        {"name": name, "replicas": chance.choice([1, 2, 3, 5]), "template": {"spec": pod["spec"], "metadata": {}}}
        for name in ("a", "b")[: chance.choice([1, 1, 2])]
    ]
    for task in tasks:
        task["template"]["metadata"] = {
            "annotations": pod["metadata"]["annotations"],
            "labels": pod["metadata"]["labels"],
        }
    metadata = {"name": "job", "namespace": "team-a", "annotations": {}}
    minimum = sum(task["replicas"] for task in tasks)
    spec = {"schedulerName": "volcano", "queue": "q", "minAvailable": minimum, "tasks": tasks}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


# --- advice ---------------------------------------------------------------------------------------------------------

_AMOUNT = re.compile(r'with (\S+) (\d+)( or less)? in container "([^"]+)"')
_NOTHING = re.compile(r'^without (\S+) in container "([^"]+)"')
_REMOVAL = re.compile(r"^without (.+?) (?:it fits|they fit)")
_ENDED = re.compile(r"^once (\S+) has ended it fits on (\S+)$")


def advised(answer: WaitAnswer) -> Iterator[tuple[str, str]]:
    """The sentences with a change of the pod or the end of another, each with the node that takes the pod then."""
    for reason in answer.reasons:
        for hint in hints(reason):
            yield hint, reason.node
    if answer.change is not None:
        yield nearest_words(answer, answer.change), ""


def follow(found: Cluster, words: str, chance: random.Random) -> Cluster:
    """The cluster in which a sentence is followed."""
    if ended := _ENDED.search(words):
        return replace(found, bound=tuple(one for one in found.bound if one.key != ended[1]))
    changed = deepcopy(found.raw)
    for pod in _templates(changed):
        if match := _AMOUNT.search(words):
            most = int(match[2])
            _write(pod, match[4], match[1], chance.choice([most, most, chance.randint(1, most)]) if match[3] else most)
        elif match := _NOTHING.search(words):
            _write(pod, match[2], match[1], 0)
        elif match := _REMOVAL.search(words):
            _remove(pod, match[1])
        else:
            raise AssertionError(f"cannot be followed: {words}")
    return replace(found, raw=changed)


def _templates(raw: dict[str, Any]) -> list[dict[str, Any]]:
    return [raw] if raw["kind"] == "Pod" else [task["template"] for task in raw["spec"]["tasks"]]


def _write(pod: dict[str, Any], container: str, resource: str, amount: int) -> None:
    (one,) = [each for each in pod["spec"]["containers"] if each["name"] == container]
    for part in ("limits", "requests"):
        one["resources"][part][resource] = str(amount)


def _remove(pod: dict[str, Any], words: str) -> None:
    if words in pod["metadata"]["annotations"]:
        del pod["metadata"]["annotations"][words]
    else:
        assert "nodeSelector" in words, words
        del pod["spec"]["nodeSelector"]


def unhindered(found: Cluster, words: str) -> Cluster | None:
    """The cluster in which a sentence about what keeps the pod beside the nodes is followed; None if it says nothing."""
    raw = deepcopy(found.raw)
    if match := re.search(r'create it again with "(\w+)"', words):
        raw["spec"]["schedulerName"] = match[1]
    elif re.search(r"has no annotation of this name; remove it", words):
        del raw["spec"]["schedulingGates"]
    elif match := re.search(r"leave the annotation (\S+) out", words):
        del raw["metadata"]["annotations"][match[1]]
    elif match := re.search(r"set (\S+): true in the arguments", words):
        return replace(found, switches=(*(found.switches or ()), match[1]))
    elif match := re.search(r'queue "(\w+)" does not exist.*; create it', words):
        return replace(found, queue=Queue(match[1], "Open"))
    elif found.queue is not None and "; open it" in words:
        return replace(found, queue=replace(found.queue, state="Open"))
    elif match := re.search(r"requests (\S+) \d+, queue \S+ allows (\d+) in all; request less", words):
        served = [one for one in raw["spec"]["containers"] if match[1] in one["resources"]["limits"]]
        if len(served) != 1:
            return None
        number = int(served[0]["resources"]["limits"].get(names.VGPU_NUMBER, 1))
        _write(raw, served[0]["name"], match[1], int(match[2]) // (1 if match[1] == names.VGPU_NUMBER else number))
    else:
        return None
    return replace(found, raw=raw)


def largest(found: Cluster, room: Headroom) -> Cluster | None:
    """The cluster in which the largest slice waits that is said to fit; None if there is none."""
    if room.slice is None:
        return None
    memory, cores = str(room.slice.memory // found.inputs.config.vgpu.memory_factor), str(room.slice.cores)
    limits = {
        "vgpu": {names.VGPU_NUMBER: "1", names.VGPU_MEMORY: memory, names.VGPU_CORES: cores},
        "gpushare": {names.GPUSHARE_MEMORY: str(room.slice.memory)},
        "ascend": {CHIP: "1", f"{CHIP}-memory": str(room.slice.memory)},
    }[room.family]
    raw = deepcopy(found.raw)
    raw["spec"] = {"containers": [{"name": "c", "image": "a", "resources": {"limits": limits, "requests": limits}}]}
    raw["spec"] |= {"schedulerName": "volcano", "tolerations": [{"operator": "Exists"}]}
    raw["metadata"] |= {"annotations": {}, "labels": {}}
    return replace(found, raw=raw)


# --- the laws -------------------------------------------------------------------------------------------------------


def advice_of_why_works(scenario: Scenario, chance: random.Random) -> None:
    """With the change that is advised, or once the pod has ended that is named, the node takes the pod now."""
    found = cluster(scenario, chance)
    answer = found.ask()
    if answer is None:
        return
    for words, node in advised(answer):
        after = follow(found, words, chance)
        then = (after.only(node) if node else after).ask()
        assert then is not None, words
        hindered = {reason.reason for reason in then.reasons if not reason.family}
        assert hindered <= {reason.reason for reason in answer.reasons}, (words, then)
        assert then.verdict is WaitVerdict.FITS_NOW or (node and hindered), (words, then)
        assert after.refused() <= found.refused(), (words, after.refused())
    for reason in answer.reasons:
        after = None if reason.family else unhindered(found, reason.message)
        again = None if after is None else after.ask()
        if again is not None:
            assert (reason.reason, reason.message) not in {(one.reason, one.message) for one in again.reasons}, again


def advice_of_why_to_jobs_works(scenario: Scenario, chance: random.Random) -> None:
    """With the amount that is advised, or so few pods, the whole job starts now."""
    found = cluster(scenario, chance, exists=False)
    answer = found.ask()
    if answer is not None and answer.change is not None:
        words = nearest_words(answer, answer.change)
        then = follow(found, words, chance).ask()
        assert then is not None, words
        assert then.verdict is WaitVerdict.FITS_NOW, (words, then)


def advice_of_what_if_works(scenario: Scenario, chance: random.Random) -> None:
    """The largest slice that is named fits now, and a pod starts on a node that is added if it is said to."""
    found = cluster(scenario, chance, hindered=False)
    node = chance.choice(found.scenario.nodes or [None])
    if node is None:
        return
    ahead = found.ahead(FleetChange(add=(parse_addition(node["metadata"]["name"]),)))
    for room in ahead.room_before:
        pod = largest(found, room)
        answer = None if pod is None else pod.ask()
        assert answer is None or answer.verdict is WaitVerdict.FITS_NOW, (room, answer)
    for fate in ahead.waiting:
        for then, after in ((found, fate.before), (found.with_copy(node["metadata"]["name"], "added"), fate.after)):
            answer = then.ask()
            assert answer is not None
            starts = after in (Fate.STARTS, Fate.DEPENDS)
            assert (answer.verdict is WaitVerdict.FITS_NOW) is starts, (fate, answer)


def what_no_node_offers_is_never_given(scenario: Scenario, chance: random.Random) -> None:
    """The scheduler counts every name that a pod requests, but the memory of NPUs."""
    found = cluster(scenario.with_policy(fleet={}), chance, hindered=False)  # of an autoscaled fleet that is not known
    offered = {name for node in found.scenario.nodes or () for name in node["status"]["allocatable"]} | {
        f"{CHIP}-memory"
    }
    limits = [container["resources"]["limits"] for container in found.raw["spec"]["containers"]]
    wanted = {name for one in limits for name in one if "/" in name and one[name] != "0"}
    answer = found.ask() if wanted - offered else None
    assert answer is None or answer.verdict is WaitVerdict.NEVER, answer
    if answer is not None:
        assert {fate.before for fate in found.ahead(FleetChange()).waiting} <= {Fate.NEVER}


LAWS: dict[str, Law] = {
    law.__name__: law
    for law in (
        advice_of_why_works,
        advice_of_why_to_jobs_works,
        advice_of_what_if_works,
        what_no_node_offers_is_never_given,
    )
}
